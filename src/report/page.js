// Draws every chart of the page from the JSON beside its canvas, again when light and dark change places.
(() => {
  const palette = ['#3b82c4', '#e0803a', '#4fa36b', '#c2506a', '#8a6fc0', '#9a7b4f', '#d0a02c', '#5aa5b5', '#7f8790', '#b05fa0', '#2f6f4f', '#a33b2b', '#4756a8', '#8fae3c', '#d97fb0', '#36827f', '#6b4e9b', '#c9a27a', '#5f7fa8', '#94502f'];
  const standsOut = '#d9480f';
  const whiskers = {
    id: 'whiskers',
    afterDatasetsDraw(chart) {
      const g = chart.ctx;
      const area = chart.chartArea;
      g.save();
      g.beginPath();
      g.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
      g.clip();
      g.lineWidth = 1.5;
      chart.data.datasets.forEach((set, i) => {
        const meta = chart.getDatasetMeta(i), y = chart.scales.y;
        if (!chart.isDatasetVisible(i) || !y) return;
        g.strokeStyle = chart.config.type === 'bar' ? Chart.defaults.color : set.borderColor;
        meta.data.forEach((mark, k) => {
          const p = set.data[k];
          if (!p || p.lo == null || p.hi == null) return;
          const top = y.getPixelForValue(p.hi), low = y.getPixelForValue(p.lo);
          g.beginPath();
          g.moveTo(mark.x, top);
          g.lineTo(mark.x, low);
          g.moveTo(mark.x - 4, top);
          g.lineTo(mark.x + 4, top);
          g.moveTo(mark.x - 4, low);
          g.lineTo(mark.x + 4, low);
          g.stroke();
        });
      });
      g.restore();
    },
  };
  const colour = (config) => config.data.datasets.forEach((set, i) => {
    set.borderColor = set.order < 0 ? standsOut : palette[i % palette.length];
    set.backgroundColor = set.borderColor + (config.type === 'bar' ? 'd0' : '60');
    if (set.bold) set.backgroundColor = set.data.map((p) => (p.x === set.bold ? standsOut : palette[0]) + 'd0');
  });
  let drawn = [];
  const draw = () => {
    const css = getComputedStyle(document.documentElement);
    Chart.defaults.color = css.getPropertyValue('--ink').trim();
    Chart.defaults.borderColor = css.getPropertyValue('--line').trim();
    Chart.defaults.font.family = 'system-ui, sans-serif';
    drawn.forEach((c) => c.destroy());
    drawn = [...document.querySelectorAll('canvas[data-config]')].map((canvas) => {
      const config = JSON.parse(document.getElementById(canvas.dataset.config).textContent);
      colour(config);
      config.plugins = [whiskers];
      return new Chart(canvas, config);
    });
    document.documentElement.dataset.charts = drawn.length;
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  draw();
})();
