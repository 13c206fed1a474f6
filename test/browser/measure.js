// Measures the page as it is shown: every text with its box, size and contrast,
// what overlaps, what does not fit. Gives one object.
(() => {
  const luminance = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const rgba = text => {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return text === "none" ? [0, 0, 0, 0] : [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a.slice(0, 3)), luminance(b.slice(0, 3))];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const rects = [...document.querySelectorAll("svg rect")].map(e => ({e, box: e.getBoundingClientRect(), fill: rgba(getComputedStyle(e).fill)}));
  const surface = (e, box) => { // what lies under a text
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    if (e instanceof SVGElement) {
      const under = rects.filter(r => r.fill[3] > 0 && r.box.left <= x && x <= r.box.right && r.box.top <= y && y <= r.box.bottom &&
        (r.e.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING));
      if (under.length) return under[under.length - 1].fill;
    }
    for (let at = e; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] > 0) return color;
    }
    return [255, 255, 255, 1];
  };
  const texts = [], faults = [];
  const root = document.body || document.documentElement;
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || ["STYLE", "SCRIPT", "style", "title", "desc"].includes(e.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const svg = e instanceof SVGElement;
    const boxes = svg ? [e.getBoundingClientRect()] : [...range.getClientRects()];
    const style = getComputedStyle(e);
    for (const box of boxes) {
      const color = rgba(svg ? style.fill : style.color);
      const under = surface(e, box);
      texts.push({text: node.data.trim().slice(0, 60), svg, box, under, size: parseFloat(style.fontSize), contrast: contrast(color, under)});
    }
  }
  const name = t => `"${t.text}" at ${Math.round(t.box.x)},${Math.round(t.box.y)}`;
  const meets = (a, b, slack) => a.left + slack < b.right && b.left + slack < a.right && a.top + slack < b.bottom && b.top + slack < a.bottom;
  const inside = (a, b, slack) => a.left >= b.left - slack && a.right <= b.right + slack && a.top >= b.top - slack && a.bottom <= b.bottom + slack;
  texts.forEach((t, i) => {
    if (t.size < 11) faults.push(`${name(t)} is ${t.size} pixels high`);
    if (t.contrast < 4.5) faults.push(`${name(t)} has a contrast of ${t.contrast.toFixed(2)}`);
    if (t.box.right > innerWidth || t.box.left < 0) faults.push(`${name(t)} is not on the page`);
    for (const o of texts.slice(0, i)) if (meets(t.box, o.box, 1)) faults.push(`${name(t)} overlaps ${name(o)}`);
    if (t.svg) for (const r of rects) if (meets(t.box, r.box, 1) && !inside(t.box, r.box, 1)) faults.push(`${name(t)} crosses a ${r.e.getAttribute("class")}`);
  });
  rects.forEach((r, i) => {
    for (const o of rects.slice(0, i)) {
      if (meets(r.box, o.box, 1) && !inside(r.box, o.box, 1) && !inside(o.box, r.box, 1)) faults.push(`rectangles ${r.e.outerHTML} and ${o.e.outerHTML} overlap`);
    }
  });
  const scroller = document.scrollingElement || document.documentElement;
  if (scroller.scrollWidth > innerWidth) faults.push(`the page is ${scroller.scrollWidth} pixels wide in a window of ${innerWidth}`);
  for (const e of document.querySelectorAll("figure, .scroll")) {
    if (e.scrollWidth > e.clientWidth) faults.push(`a ${e.tagName} of ${e.clientWidth} pixels holds ${e.scrollWidth}`);
  }
  return {
    texts: texts.length, rects: rects.length, faults: faults.slice(0, 40),
    least: Math.min(...texts.map(t => t.contrast)), smallest: Math.min(...texts.map(t => t.size)),
    scripts: document.querySelectorAll("script").length,
    dark: luminance(texts[0].under.slice(0, 3)) < 0.2,
  };
})()
