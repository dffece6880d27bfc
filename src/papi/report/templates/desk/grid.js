// Many at once: images that the model resolves to one class. Mark those that are wrong, confirm the rest.
const TILES = 24;
let grid = false, marked = new Set();

const tiles = () => list.filter((item) => !decisions.has(item.index) && item.candidates[0] === gridClass()).slice(0, TILES);
const gridClass = () => Number(part("grid-class").value);

const showGrid = () => {
  const shown = tiles();
  marked = new Set(shown.filter((item) => marked.has(item.index)).map((item) => item.index));
  const name = classes[gridClass()];
  part("grid-question").replaceChildren(
    ...(shown.length
      ? [`${shown.length === 1 ? "This looks" : `These ${shown.length} look`} like `, element("bdi", { textContent: name }), ". Mark the wrong ones."]
      : ["There are no more undecided images that look like ", element("bdi", { textContent: name }), "."]));
  const before = [...part("tiles").children].map((each) => each.dataset.index).join();
  if (before !== shown.map((item) => item.index).join()) {
    part("tiles").replaceChildren(...shown.map((item) => {
      const button = element("button", { type: "button", className: "tile", ariaLabel: named(item) }, tile(item),
        element("span", { className: "tile-name" }, element("bdi", { textContent: item.file.split("/").pop() || `image ${item.index}` })));
      button.addEventListener("click", () => {
        if (!marked.delete(item.index)) marked.add(item.index);
        showGrid();
      });
      const place = element("li", {}, button);
      place.dataset.index = item.index;
      return place;
    }));
  }
  [...part("tiles").querySelectorAll("button")].forEach((button, n) => button.setAttribute("aria-pressed", String(marked.has(shown[n].index))));
  const right = shown.length - marked.size;
  part("confirm").disabled = !shown.length;
  part("confirm").replaceChildren(right ? `Confirm ${right} as ` : "Decide on the marked", ...(right ? [element("bdi", { textContent: name })] : []));
};

const confirm = () => {
  const shown = tiles(), rest = shown.filter((item) => marked.has(item.index));
  const right = shown.filter((item) => !marked.has(item.index));
  if (right.length) decide(right, "label", [gridClass()]);
  marked = new Set();
  if (!rest.length) {
    showGrid();
    return;
  }
  setMode(false);  // the marked images come next, so that all images on the screen get decided
  list = rest;
  part("return").hidden = false;
  go(0);
};

const moveFocus = (step) => {
  const buttons = [...part("tiles").querySelectorAll("button")];
  const now = buttons.indexOf(document.activeElement);
  buttons[Math.max(0, Math.min(buttons.length - 1, now < 0 ? 0 : now + step))]?.focus();
};
const columns = () => getComputedStyle(part("tiles")).gridTemplateColumns.split(" ").length;
