// Typesets the formulas of a page, which Markdown leaves between \( \) and \[ \].
for (const element of document.querySelectorAll(".arithmatex")) {
  renderMathInElement(element, {
    delimiters: [
      { left: "\\(", right: "\\)", display: false },
      { left: "\\[", right: "\\]", display: true },
    ],
  });
}
