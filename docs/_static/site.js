// The arrows that unfold the navigation have no text: screen readers get the name of what they unfold.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("nav li > details > summary")) {
    arrow.setAttribute("aria-label", `Pages below ${arrow.closest("li").querySelector("a").textContent.trim()}`);
  }
});
