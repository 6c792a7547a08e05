// A network by name or file, specialised from shapes alone: no weight is made.
#include <string.h>
#include <unistd.h>

#include "chip/shape.h"
#include "model/onnx_read.h"
#include "model/special.h"
#include "model/zoo.h"

typedef struct Known {
    const char *network;
    Shape       shape;
} Known;

static const Known known[] = {
#define X(net, layer, k_, c_, kernel, out, stride, groups_)                                        \
    {#net,                                                                                         \
     {.name = #layer,                                                                              \
      .op = "Conv",                                                                                \
      .n = 1,                                                                                      \
      .k = (k_),                                                                                   \
      .c = (c_),                                                                                   \
      .r = (kernel),                                                                               \
      .s = (kernel),                                                                               \
      .p = (out),                                                                                  \
      .q = (out),                                                                                  \
      .groups = (groups_),                                                                         \
      .stride_h = (stride),                                                                        \
      .stride_w = (stride),                                                                        \
      .dilation_h = 1,                                                                             \
      .dilation_w = 1,                                                                             \
      .h = ((out)-1) * (stride) + (kernel),                                                        \
      .w = ((out)-1) * (stride) + (kernel)}},
#include "chip/shape_known.def"
#undef X
};

enum { KNOWN = sizeof known / sizeof *known };

// How many layers the table has of a network; writes them when there is somewhere to.
static uint32_t look_up(const char *network, int64_t batch, Shape *out) {
    uint32_t n = 0;
    for (size_t i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].network, network) != 0) continue;
        if (out != NULL) {
            out[n] = known[i].shape;
            out[n].n = batch;
        }
        n++;
    }
    return n;
}

bool shape_known(const char *network) { return look_up(network, 1, NULL) > 0; }

static bool is_file(const char *what) {
    size_t n = strlen(what);
    bool   suffix = n > 5 && strcmp(what + n - 5, ".onnx") == 0;
    return suffix || strchr(what, '/') != NULL || access(what, F_OK) == 0;
}

static Err bind(const Model *m, int64_t batch, Tensor *types) {
    for (uint32_t i = 0; i < m->graph->n_inputs; i++) {
        const Value *v = &m->graph->values[m->graph->inputs[i]];
        types[i] = v->type;
        for (int32_t d = 0; d < types[i].rank; d++) {
            if (types[i].dims[d] >= 0) continue;
            if (d > 0)
                return err_set(ERR_UNSUPPORTED,
                               "dimension %d of input '%s' is open; give it a size in the file", d,
                               v->name);
            types[i].dims[d] = batch;
        }
    }
    return ERR_OK;
}

static Err list(const Model *m, int64_t batch, Arena *a, Shape **out, uint32_t *n) {
    Specials       all;
    const Special *s = NULL;
    Tensor        *types = arena_try_new(a, Tensor, m->graph->n_inputs);
    if (types == NULL) return err_set(ERR_LIMIT, "no memory for %u inputs", m->graph->n_inputs);
    TRY(bind(m, batch, types));
    specials_init(&all, m, NULL);
    Err e = specials_get(&all, types, &s);
    if (e == ERR_OK) e = shape_list_of(s, a, out, n);
    specials_finish(&all);
    return e;
}

Err shape_list(const char *network, int64_t batch, Arena *a, Shape **out, uint32_t *n) {
    Model    m = {0};
    uint32_t layers = look_up(network, batch, NULL);
    if (layers > 0) {
        *out = arena_try_new(a, Shape, layers);
        if (*out == NULL) return err_set(ERR_LIMIT, "%s: no memory for its layers", network);
        *n = look_up(network, batch, *out);
        return ERR_OK;
    }
    if (is_file(network))
        TRY(onnx_read(network, &m));
    else
        TRY(zoo_build(network, &(ZooOptions){.batch = batch}, &m));
    Err e = list(&m, batch, a, out, n);
    model_finish(&m);
    return e == ERR_OK ? e : err_add(e, "%s", network);
}
