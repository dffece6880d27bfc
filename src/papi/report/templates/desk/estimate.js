// The review order and the estimate of wrong labels, as in papi/report/estimate.py, which explains both.
const { starts, audits, every, least, prior, z } = state.plan;
const ends = [...starts.slice(1), items.length];

const queue = () => {
  const offered = [];
  const placed = new Uint8Array(items.length);
  const next = audits.map(() => 0);
  let rank = 0, turn = 0;
  const audit = () => {
    for (let step = 0; step < audits.length; step += 1) {
      const stratum = (turn + step) % audits.length;
      while (next[stratum] < audits[stratum].length && placed[audits[stratum][next[stratum]]]) next[stratum] += 1;
      if (next[stratum] < audits[stratum].length) {
        turn = stratum + 1;
        return audits[stratum][next[stratum]];
      }
    }
    return -1;
  };
  while (offered.length < items.length) {
    let place = offered.length % every === every - 1 ? audit() : -1;
    if (place < 0) {
      while (placed[rank]) rank += 1;
      place = rank;
    }
    placed[place] = 1;
    offered.push(place);
  }
  return offered;
};

const isWrong = ({ index, candidates }) => !decisions.get(index).labels.includes(candidates[0]);
const isDecided = (item) => decisions.has(item.index) && decisions.get(item.index).kind !== "skip";
const isSkipped = (item) => decisions.get(item.index)?.kind === "skip";

const leading = (order, from) => {
  const found = [];
  for (const place of order) {
    if (place < from || isSkipped(items[place])) continue;
    if (!isDecided(items[place])) break;
    found.push(place);
  }
  return found;
};

// Returns { wrong, low, high }, or null if too few audits have been decided.
const estimate = () => {
  if (!starts.length) return null;
  let rho = items.findIndex((item) => !decisions.has(item.index));
  rho = rho < 0 ? items.length : rho;
  let mean = 0, variance = 0, undecided = 0;
  for (let stratum = 0; stratum < starts.length; stratum += 1) {
    let beyond = 0, decided = 0, wrong = 0;
    for (let place = Math.max(starts[stratum], rho); place < ends[stratum]; place += 1) {
      if (isSkipped(items[place])) continue;
      beyond += 1;
      if (!isDecided(items[place])) continue;
      decided += 1;
      wrong += isWrong(items[place]);
    }
    if (decided === beyond) continue;
    let sample = leading(audits[stratum], rho);
    const elsewhere = sample.length < least;
    if (elsewhere) sample = leading(audits[stratum], starts[stratum]);
    if (sample.length < least) return null;
    const found = sample.filter((place) => isWrong(items[place])).length;
    const a = found + prior[0], b = sample.length - found + prior[1];
    const rest = beyond - (elsewhere ? decided : sample.length);
    mean += Math.max(0, (elsewhere ? 0 : found - wrong) + rest * a / (a + b));
    variance += rest * a * b * (a + b + rest) / ((a + b) ** 2 * (a + b + 1));
    undecided += beyond - decided;
  }
  if (!undecided) return { wrong: 0, low: 0, high: 0 };
  const root = Math.sqrt(mean), spread = z * Math.sqrt(variance) / (2 * Math.sqrt(Math.max(mean, 1e-9)));
  return {
    wrong: Math.min(mean, undecided),
    low: Math.floor(Math.max(0, root - spread) ** 2),
    high: Math.min(Math.ceil((root + spread) ** 2), undecided),
  };
};
