// The images and the decisions, which are stored in this browser or by the server of the page.
const state = JSON.parse(document.getElementById("desk-state").textContent);
const { classes, served } = state;
const items = state.items.map(([index, candidates, shares, file = ""], place) => ({ place, index, candidates, shares, file }));
const byIndex = new Map(items.map((item) => [item.index, item]));
const pictures = new Map(state.pictures);

const part = (name) => document.getElementById(`desk-${name}`);
const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const counted = (number) => number.toLocaleString("en");

// Decisions by index of the image, in the order in which they were made: "undo" removes the last ones.
// Decisions made together share a `batch`.
let decisions = new Map();
const listeners = [], elsewhere = [];  // called after every change; and before, for a change in another tab
const changed = () => listeners.forEach((tell) => tell());
const changedElsewhere = () => {
  elsewhere.forEach((tell) => tell());
  changed();
};

const KINDS = ["label", "several", "none", "bad", "skip"];
// An entry is [index, kind, labels, note, batch]; earlier versions of the page stored [index, label].
const read = (entries) => {
  const found = new Map();
  for (const [index, kind, labels = [], note = "", batch = 0] of entries) {
    const old = typeof kind === "number";
    const answer = old ? { kind: "label", labels: [kind], note: "", batch: 0 } : { kind, labels, note, batch };
    const fits = answer.labels.every((k) => Number.isInteger(k) && k >= 0 && k < classes.length);
    if (KINDS.includes(answer.kind) && fits && Number.isInteger(index)) {
      found.delete(index);
      found.set(index, answer);
    }
  }
  return found;
};
const entry = ([index, { kind, labels, note, batch }]) => [index, kind, labels, note, batch];

const stored = (key) => {
  try {
    return JSON.parse(localStorage.getItem(key) || "[]");
  } catch {
    return [];
  }
};
const keep = (key, entries) => {
  try {
    localStorage.setItem(key, JSON.stringify(entries));
    return true;
  } catch {
    return false;
  }
};

const tell = (text) => {
  part("trouble").textContent = text;
  part("trouble").hidden = !text;
};

// A change is [index, answer], or [index, null] to undo a decision.
const apply = (changes) => changes.forEach(([index, answer]) => {
  decisions.delete(index);
  if (answer) decisions.set(index, answer);
});

// Without a server: another tab may have stored decisions, so they are read again before each change.
const local = {
  load: () => { decisions = read(stored(state.key)); },
  change: (changes) => {
    local.load();
    apply(changes);
    if (!keep(state.key, [...decisions].map(entry))) {
      tell("This browser cannot store your decisions: download them before you close the page.");
    }
    changed();
  },
  start: () => {
    local.load();
    window.addEventListener("storage", (event) => {
      if (event.key !== state.key) return;
      local.load();
      changedElsewhere();
    });
  },
};

// With a server: unconfirmed changes wait in this browser, survive a reload, and are sent again.
const waitingKey = `${state.key}:waiting`;
const remote = {
  version: -1,
  busy: false,
  waiting: () => stored(waitingKey),
  change: (changes) => {
    const waiting = new Map(remote.waiting().map((each) => [each[0], each]));
    for (const [index, answer] of changes) {
      waiting.delete(index);
      waiting.set(index, answer ? entry([index, answer]) : [index, null]);
    }
    if (!keep(waitingKey, [...waiting.values()])) tell("This browser cannot store your decisions: wait until they are saved.");
    apply(changes);
    changed();
    remote.send();
  },
  take: (answer) => {
    const mine = decisions;  // the server does not store batches
    decisions = read(answer.decisions);
    decisions.forEach((each, index) => { each.batch = mine.get(index)?.batch ?? 0; });
    apply(remote.waiting().map((each) => [each[0], each[1] === null ? null : read([each]).get(each[0])]));
    changedElsewhere();
  },
  send: async () => {
    if (remote.busy) return;
    remote.busy = true;
    try {
      const sent = remote.waiting();
      const reply = await fetch("decisions", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ version: remote.version, changes: sent.map(([index, ...rest]) => [index, ...rest.slice(0, 3)]) }),
      });
      const answer = await reply.json();
      if (!reply.ok) throw new Error(answer.problem);
      const same = new Set(sent.map((each) => JSON.stringify(each)));
      keep(waitingKey, remote.waiting().filter((each) => !same.has(JSON.stringify(each))));
      tell("");
      remote.version = answer.version;
      if (answer.decisions) remote.take(answer);
      else if (sent.length) changed();
    } catch (error) {
      const why = error instanceof TypeError || error instanceof SyntaxError ? "the server does not respond" : error.message;
      tell(`Not saved yet: ${why}. Your decisions are stored in this browser and will be sent again.`);
    } finally {
      remote.busy = false;
    }
  },
  start: () => {
    remote.send();
    setInterval(() => { if (!document.hidden) remote.send(); }, 2000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) remote.send(); });
  },
};
const store = served ? remote : local;

let batch = 0;
const decide = (chosen, kind, labels = [], note = "") => {
  batch = Math.max(batch, ...[...decisions.values()].map((each) => each.batch)) + 1;
  store.change(chosen.map((item) => [item.index, { kind, labels, note, batch }]));
};
// Undoes the last decision: one image, or all that were confirmed together. Returns the first of them.
const undo = () => {
  const last = [...decisions].pop();
  if (!last) return null;
  const together = [...decisions].filter(([index, { batch: own }]) => index === last[0] || (own && own === last[1].batch));
  store.change(together.map(([index]) => [index, null]));
  return together[0][0];
};

// The table for `papi labels --fix`. A quote keeps spreadsheets from evaluating names that look like formulas.
const text = (value) => (/^[=+\-@\t\r\n＝＋－＠]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const joined = (names) =>
  names.length > 1 && names.some((name) => name.includes("|") || name.startsWith("[") || name !== name.trim())
    ? JSON.stringify(names) : names.join("|");
const csv = () =>
  [["index", "file", "label", "answer", "note"], ...[...decisions].map(([index, { kind, labels, note }]) =>
    [String(index), byIndex.get(index)?.file ?? "", joined(labels.map((k) => classes[k])), kind, note])]
    .map((line) => `${line.map((value) => quoted(text(value))).join(",")}\r\n`)
    .join("");
