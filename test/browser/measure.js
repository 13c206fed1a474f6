// Measures the page as it is shown: the contrast and size of every text, what overlaps,
// what is cut off or does not fit. Gives one object.
(() => {
  const luminance = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const rgba = text => {
    const n = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a.slice(0, 3)), luminance(b.slice(0, 3))];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const background = e => {
    for (; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] > 0) return color;
    }
    return [255, 255, 255, 1];
  };
  const meets = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom;
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const faults = [];
  // Calls f for the pairs of items that overlap. What scrolls may lie behind what does not.
  const overlaps = (items, f) => {
    items = items.map(item => ({...item, scroll: item.e.closest(".scroll")})).sort((a, b) => a.rect.top - b.rect.top);
    items.forEach((a, i) => {
      for (let j = i + 1; j < items.length && items[j].rect.top < a.rect.bottom; j++) {
        if (a.scroll === items[j].scroll && meets(a.rect, items[j].rect)) f(a, items[j]);
      }
    });
  };

  const boxed = "header, section, .bus, .port, .switch, .device, td, th, dt, dd";
  const boxes = [...document.querySelectorAll(boxed)].map(e => ({e, rect: e.getBoundingClientRect()}));
  const boxName = b => `${b.e.tagName} ${b.e.className} "${b.e.textContent.trim().slice(0, 20)}"`;
  overlaps(boxes, (a, b) => {
    if (!inside(a.rect, b.rect) && !inside(b.rect, a.rect)) faults.push(`boxes ${boxName(a)} and ${boxName(b)} overlap`);
  });

  const texts = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest(".unseen, style, script") || !e.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const style = getComputedStyle(e), under = background(e), box = e.closest(boxed)?.getBoundingClientRect();
    for (const rect of range.getClientRects()) {
      // The blank at which a line of pre-wrap is broken hangs over the edge, and shows nothing.
      if (style.whiteSpace === "pre-wrap" && rect.width < parseFloat(style.fontSize) && box && rect.right > box.right) continue;
      texts.push({e, rect, box, under, text: node.data.trim().slice(0, 60), size: parseFloat(style.fontSize), contrast: contrast(rgba(style.color), under)});
    }
  }
  const name = t => `"${t.text}" at ${Math.round(t.rect.x)},${Math.round(t.rect.y)}`;
  texts.forEach(t => {
    if (t.size < 11) faults.push(`${name(t)} is ${t.size} pixels high`);
    if (t.contrast < 4.5) faults.push(`${name(t)} has a contrast of ${t.contrast.toFixed(2)}`);
    if ((t.rect.right > innerWidth || t.rect.left < 0) && !t.e.closest(".scroll")) faults.push(`${name(t)} is not on the page`);
    if (t.box && !inside(t.rect, t.box)) faults.push(`${name(t)} is larger than its box`);
  });
  overlaps(texts, (a, b) => faults.push(`${name(a)} overlaps ${name(b)}`));

  if (document.scrollingElement.scrollWidth > innerWidth) faults.push(`the page is ${document.scrollingElement.scrollWidth} pixels wide in a window of ${innerWidth}`);
  const scrolled = [];
  for (const e of document.querySelectorAll("body *")) {
    const overflow = getComputedStyle(e).overflowX;
    if (overflow === "visible" || e.matches(".unseen") || e.scrollWidth <= e.clientWidth) continue;
    if (overflow === "auto" && e.tabIndex === 0) scrolled.push(e.getAttribute("aria-label"));
    else faults.push(`a ${e.tagName} of ${e.clientWidth} pixels cuts off ${e.scrollWidth}`);
  }

  const levels = [...document.querySelectorAll(".matrix tbody tr")].map(row => [...row.querySelectorAll("td.level")].map(cell => cell.textContent));
  return {
    levels, scrolled, texts: texts.length, faults: faults.slice(0, 40),
    gpus: [...document.querySelectorAll(".gpu strong")].map(e => e.textContent).sort(),
    nics: [...document.querySelectorAll(".nic strong")].map(e => e.textContent).sort(),
    heads: [...document.querySelectorAll(".matrix thead th")].slice(1, -1).map(e => e.textContent),
    least: Math.min(...texts.map(t => t.contrast)), smallest: Math.min(...texts.map(t => t.size)),
    scripts: document.querySelectorAll("script").length,
    dark: luminance(texts[0].under.slice(0, 3)) < 0.2,
  };
})()
