#include "model/infer/selection.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/tensor.h"
#include "base/text.h"
#include "base/merge_sort.h"
#include "base/work_stop.h"

static Err no_room(void) { return err_set(ERR_LIMIT, "out of memory for the selection"); }

Err selection_nonzero(const OpCall *c, const Tensor *x, Selection *s) {
    int64_t count = tensor_count(x);
    *s = (Selection){.at = arena_try_new(c->scratch, int64_t, (size_t)count)};
    if (s->at == NULL) return no_room();
    WORK_EACH (i, count)
        if (!tensor_is_zero(x, i)) s->at[s->n++] = i;
    return work_stop_check();
}

// The items of Unique: n of them, each with outer * inner elements, as sortable keys or as strings.
typedef struct Items {
    const Tensor *x;
    int64_t       n, outer, inner;  // the input is outer x n x inner
    uint64_t     *keys;             // [n][outer * inner]; NULL for strings
} Items;

static int64_t offset_of(const Items *m, int64_t item, int64_t part) {
    return (part / m->inner * m->n + item) * m->inner + part % m->inner;
}

static int compare_strings(Str a, Str b) {
    size_t n = a.len < b.len ? a.len : b.len;
    int    order = n > 0 ? memcmp(a.at, b.at, n) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_items(const Items *m, int64_t a, int64_t b) {
    int64_t len = m->outer * m->inner;
    WORK_EACH (i, len) {
        int order = 0;
        if (m->keys != NULL) {
            uint64_t x = m->keys[a * len + i], y = m->keys[b * len + i];
            order = (x > y) - (x < y);
        } else {
            const Str *text = m->x->data;
            order = compare_strings(text[offset_of(m, a, i)], text[offset_of(m, b, i)]);
        }
        if (order != 0) return order;
    }
    return 0;
}

static int compare_entries(int64_t a, int64_t b, const void *items) {
    return compare_items(items, a, b);
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
    for (int64_t i = 0; i < m->n && !work_stopped(); i++)
        for (int64_t k = 0; k < len && !work_stopped(); k++)
            m->keys[i * len + k] = tensor_sort_key(x, offset_of(m, i, k));
    return ERR_OK;
}

Err selection_unique(const OpCall *c, UniqueSelection *u) {
    Items m;
    TRY(items_of(c, &m));
    size_t   n = (size_t)m.n;
    int64_t *order = arena_try_new(c->scratch, int64_t, n);
    int64_t *spare = arena_try_new(c->scratch, int64_t, n);
    int64_t *leader = arena_try_new(c->scratch, int64_t, n);  // [n] first item equal to each item
    int64_t *number = arena_try_new(c->scratch, int64_t, n);  // [n] output index of each first item
    *u = (UniqueSelection){.first.at = arena_try_new(c->scratch, int64_t, n),
                           .inverse = {arena_try_new(c->scratch, int64_t, n), m.n},
                           .counts = arena_try_new(c->scratch, int64_t, n)};
    if (order == NULL || spare == NULL || leader == NULL || number == NULL || u->first.at == NULL ||
        u->inverse.at == NULL || u->counts == NULL)
        return no_room();
    WORK_EACH (i, m.n) order[i] = i;
    merge_sort(order, spare, m.n, compare_entries, &m);
    for (int64_t i = 0; i < m.n && !work_stopped(); i++) {
        bool same = i > 0 && compare_items(&m, order[i - 1], order[i]) == 0;
        leader[order[i]] = same ? leader[order[i - 1]] : order[i];
    }
    bool sorted = attr_int(c->node, "sorted", 1) != 0;
    WORK_EACH (i, m.n) {
        int64_t item = sorted ? order[i] : i;
        if (leader[item] != item) continue;
        number[item] = u->first.n;
        u->first.at[u->first.n++] = item;
    }
    WORK_EACH (i, m.n) {
        u->inverse.at[i] = number[leader[i]];
        u->counts[number[leader[i]]]++;
    }
    return work_stop_check();
}

// Non-maximum suppression.
typedef struct Box {
    double y0, x0, y1, x1;
} Box;

typedef struct Limits {
    int64_t most;     // boxes per class
    double  overlap;  // intersection over union above which the box with the lower score is dropped
    double  score;    // a box needs a higher score
    bool    centred;  // boxes are centre and size, not two corners
} Limits;

static Box box_at(const float *p, bool centred) {
    double a = (double)p[0], b = (double)p[1], c = (double)p[2], d = (double)p[3];
    if (centred) return (Box){b - d / 2, a - c / 2, b + d / 2, a + c / 2};
    return (Box){fmin(a, c), fmin(b, d), fmax(a, c), fmax(b, d)};
}

static double lower(double a, double b) { return a < b ? a : b; }
static double upper(double a, double b) { return a > b ? a : b; }

static bool overlaps(Box a, Box b, double limit) {
    double h = lower(a.y1, b.y1) - upper(a.y0, b.y0), w = lower(a.x1, b.x1) - upper(a.x0, b.x0);
    double area_a = (a.y1 - a.y0) * (a.x1 - a.x0), area_b = (b.y1 - b.y0) * (b.x1 - b.x0);
    if (!(h > 0 && w > 0 && area_a > 0 && area_b > 0)) return false;
    return h * w / (area_a + area_b - h * w) > limit;
}

// Orders as the number does, from its largest value to the smallest. It is not NaN.
static int64_t descending_key(float score) {
    int32_t bits;
    score += 0.0f;  // -0 becomes 0
    memcpy(&bits, &score, sizeof bits);
    return -(int64_t)(bits < 0 ? INT32_MIN - (int64_t)bits : bits);
}

// Boxes of one class that no better one suppresses.
typedef struct Kept {
    Heap ranked;  // candidates that are still to be looked at
    Box *boxes;   // [most]
} Kept;

static void rank_candidates(const Limits *l, const float *scores, int64_t n, Heap *ranked) {
    ranked->n = 0;
    WORK_EACH (i, n)
        if ((double)scores[i] > l->score)
            ranked->items[ranked->n++] =
                (HeapItem){descending_key(scores[i]), (uint32_t)i, (uint32_t)i};
    heap_build(ranked);
}

// Selects the boxes of one class, by descending score, as triples at out; returns their number.
static int64_t select_class(const Limits *l, const float *boxes, Kept *k,
                            const int64_t *batch_class, int64_t *out) {
    int64_t kept = 0;
    while (!heap_empty(&k->ranked) && kept < l->most && !work_stopped()) {
        uint32_t id = heap_pop(&k->ranked).id;
        Box      box = box_at(boxes + 4 * (size_t)id, l->centred);
        bool     clear = true;
        for (int64_t i = 0; i < kept && clear && !work_stopped(); i++)
            clear = !overlaps(box, k->boxes[i], l->overlap);
        if (!clear) continue;
        k->boxes[kept] = box;
        out[3 * kept] = batch_class[0];
        out[3 * kept + 1] = batch_class[1];
        out[3 * kept + 2] = id;
        kept++;
    }
    return kept;
}

static Limits limits_of(const OpCall *c) {
    const Tensor *most = infer_input(c, 2), *overlap = infer_input(c, 3),
                 *score = infer_input(c, 4);
    return (Limits){.most = most != NULL ? tensor_get_i64(most, 0) : 0,
                    .overlap = overlap != NULL ? tensor_get_f64(overlap, 0) : 0,
                    .score = score != NULL ? tensor_get_f64(score, 0) : -INFINITY,
                    .centred = attr_int(c->node, "center_point_box", 0) != 0};
}

Err selection_nms(const OpCall *c, Selection *s) {
    const Tensor *boxes = c->in[0], *scores = c->in[1];
    int64_t       n = boxes->dims[1], classes = scores->dims[1];
    Limits        l = limits_of(c);
    if (l.most > n) l.most = n;
    if (l.most < 0) l.most = 0;
    if (n > UINT32_MAX) return err_set(ERR_LIMIT, "too many boxes");
    Kept k = {.ranked = {.items = arena_try_new(c->scratch, HeapItem, (size_t)n),
                         .capacity = (uint32_t)n},
              .boxes = arena_try_new(c->scratch, Box, (size_t)l.most)};
    *s = (Selection){.at = arena_try(c->scratch, (size_t)(boxes->dims[0] * classes * l.most),
                                     3 * sizeof *s->at, sizeof *s->at)};
    if (k.ranked.items == NULL || k.boxes == NULL || s->at == NULL)
        return err_set(ERR_LIMIT, "out of memory for the boxes");
    for (int64_t b = 0; b < boxes->dims[0] && !work_stopped(); b++)
        for (int64_t i = 0; i < classes && !work_stopped(); i++) {
            rank_candidates(&l, (const float *)scores->data + (b * classes + i) * n, n, &k.ranked);
            s->n += select_class(&l, (const float *)boxes->data + b * n * 4, &k, (int64_t[]){b, i},
                                 s->at + 3 * s->n);
        }
    return work_stop_check();
}

static Str lowered(const OpCall *c, Str s) {
    char *low = arena_try_new(c->scratch, char, s.len);
    if (low == NULL) return (Str){0};
    text_lower(s, low);
    return (Str){low, s.len};
}

Err selection_words(const OpCall *c, Selection *s) {
    const Tensor *x = c->in[0];
    uint32_t      n = 0;
    const Str    *stops = attr_strings(c->node, "stopwords", &n), *words = x->data;
    bool          exact = attr_int(c->node, "is_case_sensitive", 0) != 0;
    int64_t       count = tensor_count(x);
    Str          *low = arena_try_new(c->scratch, Str, n);
    *s = (Selection){.at = arena_try_new(c->scratch, int64_t, (size_t)count)};
    if (low == NULL || s->at == NULL) return err_set(ERR_LIMIT, "out of memory for the words");
    for (uint32_t i = 0; i < n; i++) {
        low[i] = exact ? stops[i] : lowered(c, stops[i]);
        if (low[i].at == NULL && low[i].len != stops[i].len)
            return err_set(ERR_LIMIT, "out of memory for the stop words");
    }
    for (int64_t i = 0; i < count && !work_stopped(); i++) {
        size_t mark = c->scratch->used;
        Str    word = exact ? words[i] : lowered(c, words[i]);
        if (word.len != words[i].len) return err_set(ERR_LIMIT, "out of memory for a word");
        bool stop = false;
        for (uint32_t k = 0; k < n && !stop; k++) stop = text_equal(word, low[k]);
        if (!stop) s->at[s->n++] = i;
        arena_rewind(c->scratch, mark);
    }
    return work_stop_check();
}
