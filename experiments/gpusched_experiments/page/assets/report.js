// Draws the figures with plotly and sorts the tables. Everything it needs stands in the page.
(() => {
  "use strict";
  const NARROW = 560, PRINT_PX = 700;

  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;

  // Dark colours are mixed with white where the ground is dark.
  const legible = (colour) => {
    const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    const [r, g, b] = parts, light = 0.299 * r + 0.587 * g + 0.114 * b;
    if (!dark() || light > 130) return colour;
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

  const dressed = (view, width) => {
    const style = getComputedStyle(document.documentElement);
    const layout = coloured(view.layout, style);
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
        uirevision: view.label || "only",
      },
      config: {
        responsive: true, displaylogo: false,
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toggleSpikelines"],
      },
    };
  };

  const plots = [];

  const draw = (plot) => {
    const { data, layout, config } = dressed(plot.views[plot.shown], plot.element.clientWidth);
    return Plotly.react(plot.element, data, layout, config);
  };

  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const name = figure.dataset.figure;
    const views = JSON.parse(document.getElementById("data-" + name).textContent);
    const plot = { element: figure.querySelector(".plot"), views, shown: 0 };
    plots.push(plot);
    draw(plot);
    const select = figure.querySelector("select");
    if (select) select.addEventListener("change", () => { plot.shown = select.selectedIndex; draw(plot); });
  }

  const redraw = () => plots.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // On paper the colours are light and the width is the paper's.
  addEventListener("beforeprint", () => {
    redraw();
    plots.forEach((plot) => Plotly.relayout(plot.element, { width: PRINT_PX }));
  });
  addEventListener("afterprint", () => {
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
