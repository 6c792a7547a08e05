// A linear program: the share of each layer that each kind computes, such that the largest load T
// of a resource (the units of a kind, the memory) by one request of the mix is least.
//
//   minimise T   with   sum_j m_j L_jr + s_r = T for each resource r,   sum_j m_j = 1
//
// A column j assigns every layer to a kind; L_jr is its load on r. There are exponentially many
// columns, but at given dual prices the cheapest one is found layer by layer: the simplex method
// with column generation.
#include "chip/chip_scenario.h"

#include <math.h>
#include <string.h>

enum { RESOURCES = CHIP_KINDS + 1, ROWS = RESOURCES + 1, STEPS = 10000 };

typedef struct Simplex {
    const CapacityCase *c;
    uint32_t            resources, rows;           // the last row: sum of m_j
    double              scale;                     // loads are divided by it
    double              basis[ROWS][ROWS];         // [column][row]; column 0 is T, and stays
    double              value[ROWS], price[ROWS];  // of columns; of rows
} Simplex;

// Load of a request of the mix on each resource with each layer on its cheapest kind.
static bool cheapest(const Simplex *p, const double *prices, double *load) {
    const CapacityCase *c = p->c;
    memset(load, 0, p->resources * sizeof *load);
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t l = 0; l < c->models[i].n_layers; l++) {
            double   best = INFINITY, unit = 0, bytes = 0;
            uint32_t at = CHIP_NONE;
            for (uint32_t k = 0; k < c->n_kinds; k++) {
                const ChipCost *x = chip_cost(&c->models[i], l, k);
                if (c->kinds[k].n_units == 0 || !isfinite(x->ns)) continue;
                double u = ((double)x->ns + c->dispatch_ns) / c->kinds[k].n_units;
                double b = (double)x->ns * (double)x->bytes_ns / c->bytes_ns;
                double price = prices[k] * u + prices[c->n_kinds] * b;
                if (price >= best) continue;
                best = price;
                unit = u;
                bytes = b;
                at = k;
            }
            if (at == CHIP_NONE) return false;
            load[at] += c->share[i] * unit / p->scale;
            load[c->n_kinds] += c->share[i] * bytes / p->scale;
        }
    return true;
}

// Solves n equations, the rows of m, in place.
static void solve(double m[ROWS][ROWS + 1], uint32_t n, double *x) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t pivot = i;
        for (uint32_t r = i + 1; r < n; r++)
            if (fabs(m[r][i]) > fabs(m[pivot][i])) pivot = r;
        for (uint32_t k = 0; k <= n; k++) {
            double swap = m[i][k];
            m[i][k] = m[pivot][k];
            m[pivot][k] = swap;
        }
        for (uint32_t r = 0; r < n; r++) {
            if (r == i) continue;
            double f = m[r][i] / m[i][i];
            for (uint32_t k = i; k <= n; k++) m[r][k] -= f * m[i][k];
        }
    }
    for (uint32_t i = 0; i < n; i++) x[i] = m[i][n] / m[i][i];
}

// The right-hand side as a combination of the basis columns.
static void express(const Simplex *p, const double *right, double *x) {
    double m[ROWS][ROWS + 1];
    for (uint32_t r = 0; r < p->rows; r++) {
        for (uint32_t j = 0; j < p->rows; j++) m[r][j] = p->basis[j][r];
        m[r][p->rows] = right[r];
    }
    solve(m, p->rows, x);
}

// Dual prices.
static void find_prices(Simplex *p) {
    double m[ROWS][ROWS + 1];
    for (uint32_t j = 0; j < p->rows; j++) {
        memcpy(m[j], p->basis[j], p->rows * sizeof **m);
        m[j][p->rows] = j == 0 ? 1 : 0;
    }
    solve(m, p->rows, p->price);
}

static void refresh(Simplex *p) {
    double right[ROWS] = {0};
    right[p->rows - 1] = 1;
    express(p, right, p->value);
    find_prices(p);
}

// The initial basis: T, one column, and the slack of every resource but the busiest.
static bool begin(Simplex *p) {
    double   prices[RESOURCES] = {0}, load[ROWS] = {0};
    uint32_t busiest = 0, at = 2;
    for (uint32_t r = 0; r < p->resources; r++) prices[r] = 1;
    p->scale = 1;
    if (!cheapest(p, prices, load)) return false;
    for (uint32_t r = 1; r < p->resources; r++)
        if (load[r] > load[busiest]) busiest = r;
    p->scale = load[busiest];
    for (uint32_t r = 0; r < p->resources; r++) {
        p->basis[0][r] = -1;
        p->basis[1][r] = load[r] / p->scale;
        if (r != busiest) p->basis[at++][r] = 1;
    }
    p->basis[1][p->rows - 1] = 1;
    refresh(p);
    return true;
}

// A column of negative reduced cost; false if there is none.
static bool find_column(const Simplex *p, double *column) {
    double prices[RESOURCES] = {0}, cost = -p->price[p->rows - 1];
    memset(column, 0, ROWS * sizeof *column);
    for (uint32_t r = 0; r < p->resources; r++) {
        prices[r] = -p->price[r];
        if (prices[r] > -1e-12) continue;
        column[r] = 1;
        return true;
    }
    for (uint32_t r = 0; r < p->resources; r++) prices[r] = fmax(prices[r], 0);
    (void)cheapest(p, prices, column);
    column[p->rows - 1] = 1;
    for (uint32_t r = 0; r < p->resources; r++) cost += prices[r] * column[r];
    return cost < -1e-10;
}

// Ratio test: the column that would become negative first leaves the basis; never T, which is > 0.
static void exchange(Simplex *p, const double *column) {
    double   part[ROWS], least = INFINITY;
    uint32_t out = 0;
    express(p, column, part);
    for (uint32_t j = 1; j < p->rows; j++) {
        if (part[j] <= 1e-12 || p->value[j] / part[j] >= least) continue;
        least = p->value[j] / part[j];
        out = j;
    }
    if (out > 0) memcpy(p->basis[out], column, sizeof p->basis[out]);
    refresh(p);
}

Err capacity_find(const CapacityCase *c, double *out) {
    Simplex p = {.c = c, .resources = c->n_kinds + 1, .rows = c->n_kinds + 2};
    double  column[ROWS], shares = 0;
    for (uint32_t i = 0; i < c->n; i++) shares += c->share[i];
    if (!(shares > 0)) return err_set(ERR_ARG, "no network has a share of the requests");
    if (!begin(&p)) return err_set(ERR_ARG, "a layer runs on no unit of the package");
    if (!(p.scale > 0)) return err_set(ERR_ARG, "the networks take no time");
    for (uint32_t i = 0; i < STEPS && find_column(&p, column); i++) exchange(&p, column);
    *out = 1e9 * shares / (p.value[0] * p.scale);
    return ERR_OK;
}
