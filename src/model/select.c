#include "model/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static Err no_room(void) { return err_set(ERR_LIMIT, "no room to select elements"); }

Err select_nonzero(const OpCall *c, const Tensor *x, Selected *s) {
    int64_t count = tensor_count(x);
    *s = (Selected){.at = arena_try_new(c->scratch, int64_t, (size_t)count)};
    if (s->at == NULL) return no_room();
    for (int64_t i = 0; i < count; i++)
        if (!number_is_zero(x, i)) s->at[s->n++] = i;
    return ERR_OK;
}

// The items to compare: n of them, each with len parts, as sortable keys or as strings.
typedef struct Items {
    const Tensor *x;
    int64_t       n, outer, inner;  // the input is outer x n x inner
    uint64_t     *keys;             // [n][outer * inner]; NULL for strings
} Items;

static int64_t place(const Items *m, int64_t item, int64_t part) {
    return (part / m->inner * m->n + item) * m->inner + part % m->inner;
}

static int compare_strings(Str a, Str b) {
    size_t n = a.len < b.len ? a.len : b.len;
    int    order = n > 0 ? memcmp(a.at, b.at, n) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_items(const Items *m, int64_t a, int64_t b) {
    int64_t len = m->outer * m->inner;
    for (int64_t i = 0; i < len; i++) {
        int order = 0;
        if (m->keys != NULL) {
            uint64_t x = m->keys[a * len + i], y = m->keys[b * len + i];
            order = (x > y) - (x < y);
        } else {
            const Str *text = m->x->data;
            order = compare_strings(text[place(m, a, i)], text[place(m, b, i)]);
        }
        if (order != 0) return order;
    }
    return 0;
}

// Equal items stay in their order, so that the comparison is a total one.
static int compare_entries(const void *a, const void *b, void *items) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    int     order = compare_items(items, x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static Err items_of(const OpCall *c, Items *m) {
    const Tensor *x = c->in[0];
    int32_t       axis = 0;
    *m = (Items){.x = x, .n = tensor_count(x), .outer = 1, .inner = 1};
    if (attr_has(c->node, "axis")) {
        TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &axis));
        m->n = x->dims[axis];
        for (int32_t i = 0; i < x->rank; i++)
            if (i != axis) *(i < axis ? &m->outer : &m->inner) *= x->dims[i];
    }
    if (x->dtype == DT_STR) return ERR_OK;
    int64_t len = m->outer * m->inner;
    m->keys = arena_try_new(c->scratch, uint64_t, (size_t)(m->n * len));
    if (m->keys == NULL) return no_room();
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t k = 0; k < len; k++) m->keys[i * len + k] = number_key(x, place(m, i, k));
    return ERR_OK;
}

Err select_unique(const OpCall *c, SelectUnique *u) {
    Items m;
    TRY(items_of(c, &m));
    size_t   n = (size_t)m.n;
    int64_t *order = arena_try_new(c->scratch, int64_t, n);
    int64_t *leader = arena_try_new(c->scratch, int64_t, n);  // the first item equal to each
    int64_t *number = arena_try_new(c->scratch, int64_t, n);  // of a leader, in the output
    *u = (SelectUnique){.first.at = arena_try_new(c->scratch, int64_t, n),
                        .inverse = {arena_try_new(c->scratch, int64_t, n), m.n},
                        .counts = arena_try_new(c->scratch, int64_t, n)};
    if (order == NULL || leader == NULL || number == NULL || u->first.at == NULL ||
        u->inverse.at == NULL || u->counts == NULL)
        return no_room();
    for (int64_t i = 0; i < m.n; i++) order[i] = i;
    qsort_r(order, n, sizeof *order, compare_entries, &m);
    for (int64_t i = 0; i < m.n; i++) {
        bool same = i > 0 && compare_items(&m, order[i - 1], order[i]) == 0;
        leader[order[i]] = same ? leader[order[i - 1]] : order[i];
    }
    bool sorted = attr_int(c->node, "sorted", 1) != 0;
    for (int64_t i = 0; i < m.n; i++) {
        int64_t item = sorted ? order[i] : i;
        if (leader[item] != item) continue;
        number[item] = u->first.n;
        u->first.at[u->first.n++] = item;
    }
    for (int64_t i = 0; i < m.n; i++) {
        u->inverse.at[i] = number[leader[i]];
        u->counts[number[leader[i]]]++;
    }
    return ERR_OK;
}
