// Non-maximum suppression: the best boxes of each class that do not overlap a better one too much.
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "model/select.h"

typedef struct Box {
    double y0, x0, y1, x1;
} Box;

typedef struct Ranked {
    double  score;
    int64_t box;
} Ranked;

typedef struct Limits {
    int64_t most;     // boxes per class
    double  overlap;  // intersection over union beyond which the worse box goes
    double  score;    // boxes must score more
    bool    centred;  // boxes are centre and size, not two corners
} Limits;

static Box box_at(const float *p, bool centred) {
    double a = (double)p[0], b = (double)p[1], c = (double)p[2], d = (double)p[3];
    if (centred) return (Box){b - d / 2, a - c / 2, b + d / 2, a + c / 2};
    return (Box){fmin(a, c), fmin(b, d), fmax(a, c), fmax(b, d)};
}

static bool overlaps(Box a, Box b, double limit) {
    double h = fmin(a.y1, b.y1) - fmax(a.y0, b.y0), w = fmin(a.x1, b.x1) - fmax(a.x0, b.x0);
    double area_a = (a.y1 - a.y0) * (a.x1 - a.x0), area_b = (b.y1 - b.y0) * (b.x1 - b.x0);
    if (!(h > 0 && w > 0 && area_a > 0 && area_b > 0)) return false;
    return h * w / (area_a + area_b - h * w) > limit;
}

static int better(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

// Ranks the boxes of one class and keeps the good ones as triples at out; returns how many.
static int64_t select_class(const Limits *l, const float *boxes, const float *scores, int64_t n,
                            Ranked *ranked, const int64_t *batch_class, int64_t *out) {
    int64_t candidates = 0, kept = 0;
    for (int64_t i = 0; i < n; i++)
        if ((double)scores[i] > l->score) ranked[candidates++] = (Ranked){(double)scores[i], i};
    qsort(ranked, (size_t)candidates, sizeof *ranked, better);
    for (int64_t i = 0; i < candidates && kept < l->most; i++) {
        Box  box = box_at(boxes + 4 * ranked[i].box, l->centred);
        bool clear = true;
        for (int64_t k = 0; k < kept && clear; k++)
            clear = !overlaps(box, box_at(boxes + 4 * out[3 * k + 2], l->centred), l->overlap);
        if (!clear) continue;
        out[3 * kept] = batch_class[0];
        out[3 * kept + 1] = batch_class[1];
        out[3 * kept + 2] = ranked[i].box;
        kept++;
    }
    return kept;
}

static Limits limits_of(const OpCall *c) {
    const Tensor *most = infer_in(c, 2), *overlap = infer_in(c, 3), *score = infer_in(c, 4);
    return (Limits){.most = most != NULL ? number_i64(most, 0) : 0,
                    .overlap = overlap != NULL ? number_f64(overlap, 0) : 0,
                    .score = score != NULL ? number_f64(score, 0) : -INFINITY,
                    .centred = attr_int(c->node, "center_point_box", 0) != 0};
}

Err select_boxes(const OpCall *c, Selected *s) {
    const Tensor *boxes = c->in[0], *scores = c->in[1];
    int64_t       n = boxes->dims[1], classes = scores->dims[1];
    Limits        l = limits_of(c);
    if (l.most > n) l.most = n;
    if (l.most < 0) l.most = 0;
    Ranked *ranked = arena_try_new(c->scratch, Ranked, (size_t)n);
    *s = (Selected){.at = arena_try(c->scratch, (size_t)(boxes->dims[0] * classes * l.most),
                                    3 * sizeof *s->at, sizeof *s->at)};
    if (ranked == NULL || s->at == NULL) return err_set(ERR_LIMIT, "no room to rank boxes");
    for (int64_t b = 0; b < boxes->dims[0]; b++)
        for (int64_t k = 0; k < classes; k++)
            s->n += select_class(&l, (const float *)boxes->data + b * n * 4,
                                 (const float *)scores->data + (b * classes + k) * n, n, ranked,
                                 (int64_t[]){b, k}, s->at + 3 * s->n);
    return ERR_OK;
}
