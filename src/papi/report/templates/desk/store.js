// What the page knows of the images, and the decisions: kept in this browser, or by the server that handed out the page.
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

// Decisions by index of the image, in the order in which they were made: the last ones are what "undo" takes back.
// Decisions made together share a `batch`.
let decisions = new Map();
const listeners = [], elsewhere = [];  // told of every change; and, before, of one in another tab
const changed = () => listeners.forEach((tell) => tell());
const changedElsewhere = () => {
  elsewhere.forEach((tell) => tell());
  changed();
};

const KINDS = ["label", "several", "none", "bad", "skip"];
// One entry is [index, kind, labels, note, batch]; earlier versions of the page kept [index, label].
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

// A change is [index, answer], or [index, null] to take a decision back.
const apply = (changes) => changes.forEach(([index, answer]) => {
  decisions.delete(index);
  if (answer) decisions.set(index, answer);
});

// Without a server: another tab may have stored decisions meanwhile, so they are read again before each change.
const local = {
  load: () => { decisions = read(stored(state.key)); },
  change: (changes) => {
    local.load();
    apply(changes);
    if (!keep(state.key, [...decisions].map(entry))) {
      tell("This browser keeps nothing for this page: download your decisions before you close it.");
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

// With a server: what it has not confirmed waits in this browser, survives a reload, and is sent again.
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
    if (!keep(waitingKey, [...waiting.values()])) tell("This browser keeps nothing: wait until decisions are saved.");
    apply(changes);
    changed();
    remote.send();
  },
  take: (answer) => {
    const mine = decisions;  // the server does not know what was decided together
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
      const why = error instanceof TypeError || error instanceof SyntaxError ? "the server does not answer" : error.message;
      tell(`Not saved yet: ${why}. Your decisions wait in this browser and are sent again.`);
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
// Takes back what was decided last: one image, or all that were confirmed together. Answers with the first of them.
const undo = () => {
  const last = [...decisions].pop();
  if (!last) return null;
  const together = [...decisions].filter(([index, { batch: own }]) => index === last[0] || (own && own === last[1].batch));
  store.change(together.map(([index]) => [index, null]));
  return together[0][0];
};

// The table that `papi labels --fix` takes. A spreadsheet would compute what begins like a formula.
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
