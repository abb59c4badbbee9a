// Samples the figures with plotly and sorts the tables. Everything it needs stands in the page.
(() => {
  "use strict";
  const NARROW = 560, PRINT_PX = 700, MOST_LABELS = 400;

  const isDark = () =>
    matchMedia("(prefers-color-scheme: dark)").matches && !document.documentElement.classList.contains("on-paper");

  // Dark colours are mixed with white where the ground is dark.
  const legible = (colour) => {
    const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    const [r, g, b] = parts, light = 0.299 * r + 0.587 * g + 0.114 * b;
    if (!isDark() || light > 130) return colour;
    const part = (130 - light) / (255 - light);
    return `rgb(${parts.map((each) => Math.round(each + part * (255 - each))).join(",")})`;
  };

  // A text "var:NAME" stands for the page's colour NAME, which follows light and dark; "hue:#RRGGBB" for a legible one.
  const coloured = (value, style) => {
    if (typeof value === "string") {
      if (value.startsWith("hue:")) return legible(value.slice(4));
      return value.startsWith("var:") ? style.getPropertyValue("--" + value.slice(4)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((each) => coloured(each, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, coloured(each, style)]));
    }
    return value;
  };

  // Boxes are drawn as one path: a shape for each would be slow.
  const shape = ({ edges: [x0, x1, y0, y1], look }) => ({
    type: "path", xref: "x", yref: "y", layer: "between", fillrule: "nonzero",
    path: x0.map((x, i) => `M${x},${y0[i]}H${x1[i]}V${y1[i]}H${x}Z`).join(""), ...look,
  });

  // Labels of the boxes that have room for them in this range: [left, right, upper, lower] and pixels.
  const labels = (view, [left, right], [y1, y0], width, height) => {
    const found = [], xScale = width / (right - left), yScale = height / Math.abs(y1 - y0);
    const [top, bottom] = [Math.min(y0, y1), Math.max(y0, y1)];
    for (const { edges, labels: texts, ink } of view.boxes) {
      texts.forEach((text, i) => {
        const [a, b, c, d] = edges.map((each) => each[i]);
        const [x, until, y, below] = [Math.max(a, left), Math.min(b, right), Math.max(c, top), Math.min(d, bottom)];
        const [w, h] = [(until - x) * xScale, (below - y) * yScale];
        if (w >= 8 * text.length + 4 && h >= 10) found.push({ x: (x + until) / 2, y: (y + below) / 2, text, ink, size: w * h });
      });
    }
    found.sort((one, other) => other.size - one.size).splice(MOST_LABELS);
    return found;
  };

  const labelTrace = (found) => ({
    type: "scatter", mode: "text", hoverinfo: "skip", showlegend: false, x: found.map((each) => each.x),
    y: found.map((each) => each.y), text: found.map((each) => each.text),
    textfont: { size: 10, color: found.map((each) => each.ink) },
  });

  const dressed = (view, width) => {
    const style = getComputedStyle(document.documentElement);
    const layout = coloured(view.layout, style);
    layout.shapes = [...(layout.shapes ?? []), ...coloured(view.boxes.map(shape), style)];
    const [ink, grid, paper] = ["ink", "grid", "paper"].map((name) => style.getPropertyValue("--" + name).trim());
    const family = getComputedStyle(document.body).fontFamily;
    for (const name of Object.keys(layout).filter((each) => /^[xy]axis\d*$/.test(each))) {
      layout[name] = {
        automargin: true, gridcolor: grid, zerolinecolor: grid, linecolor: grid, ticks: "", zeroline: false, ...layout[name],
      };
    }
    layout.legend = {
      orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)", ...layout.legend,
    };
    return {
      data: coloured(view.traces, style),
      layout: {
        ...layout, height: view.height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { family, size: width < NARROW ? 11 : 12.5, color: ink },
        hoverlabel: { bgcolor: paper, bordercolor: grid, font: { family, size: 12.5, color: ink }, align: "left" },
        hovermode: "closest", dragmode: "zoom", modebar: { bgcolor: "rgba(0,0,0,0)", color: grid, activecolor: ink },
        uirevision: layout.uirevision ?? view.label,
      },
      config: {
        responsive: true, displaylogo: false, showTips: false, plotlyServerURL: "", doubleClickDelay: 500,
        // Named one by one: plotly's own choice has a button that would send the chart to a server.
        modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
      },
    };
  };

  const plots = [];

  const draw = (plot) => {
    const view = plot.views[plot.shown];
    const { data, layout, config } = dressed(view, plot.element.clientWidth);
    if (!view.boxes.length) return Plotly.react(plot.element, data, layout, config);
    const shown = plot.element._fullLayout;
    const [x, y] = shown ? [shown.xaxis.range, shown.yaxis.range] : [layout.xaxis.range, layout.yaxis.range];
    const found = labels(view, x, y, plot.element.clientWidth - 140, view.height - 110);
    return Plotly.react(plot.element, [...data, labelTrace(found)], layout, config);
  };

  // What is zoomed to has other labels, and the box below the pointer says its text.
  const watchBoxes = (plot) => {
    const element = plot.element, tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    element.parentElement.append(tip);
    let range = "";
    element.on("plotly_relayout", () => {
      const { xaxis, yaxis } = element._fullLayout, now = JSON.stringify([xaxis.range, yaxis.range]);
      if (now === range) return;
      range = now;
      const trace = labelTrace(labels(plot.views[plot.shown], xaxis.range, yaxis.range, xaxis._length, yaxis._length));
      const { x, y, text } = trace;
      Plotly.restyle(element, { x: [x], y: [y], text: [text], "textfont.color": [trace.textfont.color] }, [element.data.length - 1]);
    });
    const textAt = (event) => {
      const { xaxis, yaxis } = element._fullLayout, place = element.getBoundingClientRect();
      const px = event.clientX - place.left - xaxis._offset, py = event.clientY - place.top - yaxis._offset;
      if (px < 0 || py < 0 || px > xaxis._length || py > yaxis._length) return "";
      const x = xaxis.p2d(px), y = yaxis.p2d(py), slack = xaxis.p2d(2) - xaxis.p2d(0);
      let best = "", least = Infinity;
      for (const { edges: [x0, x1, y0, y1], texts } of plot.views[plot.shown].boxes) {
        for (let i = 0; i < texts.length; i++) {
          if (y < y0[i] || y > y1[i]) continue;
          const away = Math.max(x0[i] - x, x - x1[i], 0);
          if (away <= slack && away < least) [best, least] = [texts[i], away];
        }
      }
      return best;
    };
    const point = (event) => {
      const text = event.buttons ? "" : textAt(event);
      tip.hidden = !text;
      if (!text) return;
      tip.replaceChildren(...text.split("\n").map((line) => Object.assign(document.createElement("div"), { textContent: line })));
      const beside = tip.parentElement.getBoundingClientRect();
      const x = event.clientX - beside.left + tip.parentElement.scrollLeft, y = event.clientY - beside.top;
      const right = x + 14 + tip.offsetWidth > tip.parentElement.scrollLeft + beside.width;
      tip.style.left = `${right ? Math.max(0, x - 14 - tip.offsetWidth) : x + 14}px`;
      tip.style.top = `${Math.max(0, Math.min(y + 14, beside.height - tip.offsetHeight - 4))}px`;
    };
    element.addEventListener("mousemove", point);
    element.addEventListener("click", point);
    element.addEventListener("mouseleave", () => { tip.hidden = true; });
    element.on("plotly_hover", () => { tip.hidden = true; });
  };

  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const name = figure.dataset.figure;
    const views = JSON.parse(document.getElementById("data-" + name).textContent);
    const plot = { element: figure.querySelector(".chart"), views, shown: 0 };
    plots.push(plot);
    draw(plot);
    if (views.some((view) => view.boxes.length)) watchBoxes(plot);
    const select = figure.querySelector("select");
    if (select) select.addEventListener("change", () => { plot.shown = select.selectedIndex; draw(plot); });
  }

  const redraw = () => plots.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // On paper the colours are light and the width is the paper's.
  const root = document.documentElement.classList;
  addEventListener("beforeprint", () => {
    root.add("on-paper");
    redraw();
    plots.forEach((plot) => Plotly.relayout(plot.element, { width: PRINT_PX }));
  });
  addEventListener("afterprint", () => {
    root.remove("on-paper");
    plots.forEach((plot) => Plotly.relayout(plot.element, { width: null, autosize: true }));
    redraw();
  });

  // A click on a heading sorts by it; the next click the other way round.
  const key = (cell) => (cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value));
  const compare = (a, b) => {
    const [one, two] = [key(a), key(b)];
    if (typeof one === "number" && typeof two === "number") return one - two;
    if (typeof one !== typeof two) return typeof one === "number" ? -1 : 1;
    return one.localeCompare(two, undefined, { numeric: true });
  };
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead th")], body = table.tBodies[0];
    if (!body || body.rows.length < 2) continue;
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => compare(a.cells[index], b.cells[index]));
        body.append(...(falling ? rows.reverse() : rows));
      });
    });
  }
})();
