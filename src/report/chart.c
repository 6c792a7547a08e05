#include "report/chart.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

enum {
    QUANTILES = 200,  // points of a distribution, at most
    DOTS = 60,        // longer lines have no markers
};

json_t *chart_number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *point(const Chart *c, const ChartSeries *s, uint32_t i) {
    json_t *p = json_object();
    if (c->kind == CHART_BAR)
        json_object_set_new(p, "x", json_string(c->groups[i]));
    else
        json_object_set_new(p, "x", chart_number(s->x[i]));
    json_object_set_new(p, "y", chart_number(s->y[i]));
    if (s->half != NULL && isfinite(s->half[i]) && isfinite(s->y[i])) {
        json_object_set_new(p, "lo", json_real(s->y[i] - s->half[i]));
        json_object_set_new(p, "hi", json_real(s->y[i] + s->half[i]));
    }
    return p;
}

static Err distribution(const ChartSeries *s, Arena *scratch, json_t *points) {
    double  *sorted = NULL;
    size_t   mark = scratch->used;
    uint32_t n = s->n < QUANTILES ? s->n : QUANTILES;
    TRY(stats_sort(scratch, s->y, s->n, &sorted));
    for (uint32_t i = 1; i <= n; i++) {
        double share = (double)i / n;
        json_array_append_new(points,
                              json_pack("{s:o,s:f}", "x",
                                        chart_number(stats_percentile(sorted, s->n, 100 * share)),
                                        "y", share));
    }
    arena_rewind(scratch, mark);
    return ERR_OK;
}

static bool is_named(const char *name, const ChartSeries *s) {
    return name != NULL && strcmp(name, s->name) == 0;
}

static Err dataset(const Chart *c, const ChartSeries *s, Arena *scratch, json_t *sets) {
    json_t *points = json_array();
    json_t *set = json_pack("{s:s,s:o,s:f}", "label", s->name, "data", points, "borderWidth",
                            c->kind == CHART_BAR   ? 0.0
                            : is_named(c->bold, s) ? 4.0
                                                   : 2.0);
    if (set == NULL)
        return err_set(ERR_INVALID, "the name of a series of '%s' is not UTF-8", c->title);
    json_array_append_new(sets, set);
    if (c->kind == CHART_BAR && c->bold != NULL)
        json_object_set_new(set, "bold", json_string(c->bold));
    if (c->kind != CHART_BAR && is_named(c->bold, s))
        json_object_set_new(set, "order", json_integer(-1));
    if (s->hidden) json_object_set_new(set, "hidden", json_true());
    if (is_named(c->dashed, s)) json_object_set_new(set, "borderDash", json_pack("[ii]", 6, 4));
    if (c->kind == CHART_DISTRIBUTION) {
        json_object_set_new(set, "pointRadius", json_integer(0));
        json_object_set_new(set, "stepped", json_string("before"));
        return distribution(s, scratch, points);
    }
    if (c->kind == CHART_LINE && s->n > DOTS)
        json_object_set_new(set, "pointRadius", json_integer(0));
    for (uint32_t i = 0; i < s->n; i++) json_array_append_new(points, point(c, s, i));
    return ERR_OK;
}

static json_t *axis(const Chart *c, const char *label, bool log, bool from_zero) {
    bool        words = c->kind == CHART_BAR && label == c->x_label;
    const char *type = words ? "category" : log ? "logarithmic" : "linear";
    return json_pack("{s:s,s:b,s:{s:b,s:s}}", "type", type, "beginAtZero", from_zero && !log,
                     "title", "display", label != NULL, "text", label != NULL ? label : "");
}

// The y axis holds whole intervals, up to 1.5 times the largest value.
static double y_limit(const Chart *c) {
    double most = 0, value = 0;
    for (uint32_t i = 0; i < c->n_series; i++)
        for (uint32_t k = 0; c->series[i].half != NULL && k < c->series[i].n; k++) {
            double y = c->series[i].y[k], half = c->series[i].half[k];
            if (isfinite(y)) value = fmax(value, y);
            if (isfinite(y) && isfinite(half)) most = fmax(most, y + half);
        }
    most = fmin(most, 1.5 * value);
    return c->most > 0 ? fmin(most, c->most) : most;
}

static json_t *y_axis(const Chart *c) {
    bool    from_zero = c->kind == CHART_BAR || c->kind == CHART_DISTRIBUTION;
    json_t *y = axis(c, c->y_label, c->log_y, from_zero);
    if (y != NULL && c->kind != CHART_DISTRIBUTION && y_limit(c) > 0)
        json_object_set_new(y, "suggestedMax", json_real(y_limit(c)));
    return y;
}

static json_t *options(const Chart *c) {
    return json_pack("{s:b,s:b,s:{s:{s:b,s:s},s:{s:b}},s:{s:o,s:o}}", "maintainAspectRatio", 0,
                     "animation", 0, "plugins", "title", "display", 1, "text", c->title, "legend",
                     "display", c->n_series > 1, "scales", "x",
                     axis(c, c->x_label, c->log_x, false), "y", y_axis(c));
}

Err chart_json(const Chart *c, Arena *scratch, json_t **out) {
    json_t *sets = json_array(), *opts = options(c);
    Err     e = opts != NULL ? ERR_OK : err_set(ERR_INVALID, "a text of a chart is not UTF-8");
    for (uint32_t i = 0; e == ERR_OK && i < c->n_series; i++)
        e = dataset(c, &c->series[i], scratch, sets);
    if (e != ERR_OK) {
        json_decref(sets);
        json_decref(opts);
        return e;
    }
    const char *type = c->kind == CHART_BAR ? "bar" : c->kind == CHART_SCATTER ? "scatter" : "line";
    *out = json_pack("{s:s,s:{s:o},s:o}", "type", type, "data", "datasets", sets, "options", opts);
    if (*out == NULL) return err_set(ERR_LIMIT, "no memory for the chart '%s'", c->title);
    return ERR_OK;
}
