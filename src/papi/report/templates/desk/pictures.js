// Pictures of the images: from the server, from the page itself, or from the photo next to the page.
const encoded = (file) => file.split("/").map(encodeURIComponent).join("/");
const small = (item) => (served ? `thumbnail/${item.index}` : pictures.get(item.place) ?? "");
const large = (item) => (served ? `photo/${item.index}` : state.links && item.file ? state.links + encoded(item.file) : "");
const best = (item) => small(item) || large(item);
const named = (item) => (item.file ? `Image ${item.index}: ${item.file}` : `Image ${item.index}`);

// The picture of a tile, or the number of the image if there is none.
const tile = (item) => {
  const source = best(item);
  if (!source) return element("span", { className: "no-tile", textContent: String(item.index) });
  const picture = element("img", { src: source, alt: "", loading: "lazy", decoding: "async" });
  picture.addEventListener("error", () => picture.replaceWith(element("span", { className: "no-tile", textContent: String(item.index) })));
  return picture;
};

// The network sees a centre crop of a photo with its own aspect ratio: the largest possible, or a share of that.
const markCrop = (mark, width, height) => {
  const [aspect, share] = state.crop;
  const across = aspect ? share * Math.min(1, aspect * height / width) : 1;
  const down = aspect ? share * Math.min(1, width / (aspect * height)) : 1;
  mark.hidden = across > 0.995 && down > 0.995;
  mark.style.inset = `${50 * (1 - down)}% ${50 * (1 - across)}%`;
};

const view = part("view"), photo = part("picture"), mark = part("crop");
let wanted = null;
const shownAs = () => {
  const { naturalWidth: width, naturalHeight: height } = photo;
  if (!width) return;
  view.style.aspectRatio = `${width} / ${height}`;
  const tiny = Math.max(width, height) <= 64;  // show the pixels, enlarged at most ten times
  const largest = tiny ? `${10 * width}px` : "100%";
  view.style.width = `min(100%, ${largest}, calc(var(--photo) * ${(width / height).toFixed(4)}))`;
  view.parentElement.classList.toggle("little", tiny);
  photo.classList.toggle("pixels", tiny);
  markCrop(mark, width, height);
};
const showPicture = (item) => {
  wanted = item;
  const first = small(item), second = large(item);
  photo.alt = named(item);
  part("none-here").hidden = Boolean(first || second);
  view.hidden = !first && !second;
  if (!first && !second) {
    photo.removeAttribute("src");
    return;
  }
  photo.src = first || second;
  if (!second || second === photo.src) return;
  const full = new Image();  // show the small picture until the photo has loaded
  full.addEventListener("load", () => { if (wanted === item) photo.src = second; });
  full.src = second;
};
photo.addEventListener("load", shownAs);
photo.addEventListener("error", () => {
  view.hidden = true;
  part("none-here").hidden = false;
});
const fetchAhead = (item) => {
  if (item && (served || !small(item)) && large(item)) new Image().src = large(item);
};

const dialog = part("large");
const zoom = () => {
  if (dialog.open) {
    dialog.close();
    return;
  }
  if (view.hidden) return;
  part("large-picture").src = photo.src;
  part("large-picture").alt = photo.alt;
  part("large-picture").classList.toggle("pixels", photo.classList.contains("pixels"));
  dialog.showModal();
};
view.addEventListener("click", zoom);
dialog.addEventListener("click", () => dialog.close());
