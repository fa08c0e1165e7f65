// The oscillator of the physics chapter: the formulas of phase_rppg.physics.Oscillator, with sliders.
(() => {
  const DT_S = 1 / 30;
  const FRAMES = 240;
  const SVG = "http://www.w3.org/2000/svg";
  const SLIDERS = [
    { key: "alpha", label: "damping α (1/s)", min: 0.5, max: 20, step: 0.1, value: 4 },
    { key: "omega", label: "frequency ω (rad/s)", min: 3, max: 25, step: 0.1, value: 7.5 },
    { key: "eps", label: "error ε", min: 0.001, max: 0.2, step: 0.001, value: 0.01 },
  ];

  function kernel(alpha, omega, length) {
    const gain = 1 / (1 + alpha * DT_S);
    let z = DT_S * DT_S * gain;
    let v = DT_S * gain;
    const taps = [];
    for (let m = 0; m < length; m++) {
      taps.push(z);
      [z, v] = [
        (1 - omega * omega * DT_S * DT_S * gain) * z + DT_S * gain * v,
        -omega * omega * DT_S * gain * z + gain * v,
      ];
    }
    return taps;
  }

  // The first length whose tail, for a force that holds the steady state at 1, is below eps.
  function neededTaps(alpha, omega, eps) {
    const taps = kernel(alpha, omega, 6000);
    let tail = 0;
    for (let m = taps.length - 1; m >= 0; m--) {
      tail += Math.abs(taps[m]) * omega * omega;
      if (tail > eps) return m + 1;
    }
    return 1;
  }

  function polyline(points, name) {
    const line = document.createElementNS(SVG, "polyline");
    line.setAttribute("points", points.map((p) => p.map((x) => x.toFixed(1)).join(",")).join(" "));
    line.setAttribute("class", name);
    return line;
  }

  function draw(svg, text, { alpha, omega, eps }) {
    const taps = kernel(alpha, omega, FRAMES);
    const top = Math.max(...taps.map(Math.abs));
    const points = taps.map((g, m) => [20 + (m * 600) / FRAMES, 100 - (g / top) * 85]);
    const length = neededTaps(alpha, omega, eps);
    svg.replaceChildren(
      polyline([[20, 100], [620, 100]], "axis"),
      polyline(points.slice(0, length), "used"),
      polyline(points.slice(Math.max(length - 1, 0)), "cut"),
    );
    const zeta = alpha / (2 * omega);
    text.textContent =
      `damping ratio ζ = ${zeta.toFixed(2)} · ${((omega / 2 / Math.PI) * 60).toFixed(0)} per minute · ` +
      `R = ${length} frames = ${(length * DT_S).toFixed(2)} s`;
  }

  function start() {
    const place = document.getElementById("kernel-explorer");
    if (!place || place.childElementCount) return;
    const values = {};
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 640 200");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "The kernel of the oscillator over eight seconds");
    const text = document.createElement("p");
    text.setAttribute("aria-live", "polite");
    for (const { key, label, ...range } of SLIDERS) {
      const row = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "range", ...range });
      const shown = document.createElement("output");
      const update = () => {
        values[key] = Number(input.value);
        shown.textContent = input.value;
        if (Object.keys(values).length === SLIDERS.length) draw(svg, text, values);
      };
      input.addEventListener("input", update);
      row.append(label, input, shown);
      place.append(row);
      update();
    }
    place.append(svg, text);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
