#include "model/zoo/zoo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/zoo/zoo_part.h"

enum { MAX_BATCH = 65536, MAX_SEQUENCE = 512 };

static const ZooEntry entries[] = {
#define X(name, input, sequence, mmacs, mparams, source, about)                                    \
    {#name, input, sequence, mmacs, mparams, source, about, zoo_##name},
#include "model/zoo/zoo.def"
#undef X
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };

const ZooEntry *zoo_entry(size_t i) { return i < N_ENTRIES ? &entries[i] : NULL; }

const ZooEntry *zoo_find(const char *name) {
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (strcmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}

static Err unknown(const char *name) {
    char     close[200] = "";
    uint32_t best = UINT32_MAX;
    size_t   used = 0;
    for (size_t i = 0; i < N_ENTRIES; i++) {
        uint32_t d = text_distance(name, entries[i].name);
        if (d < best) best = d;
    }
    for (size_t i = 0; i < N_ENTRIES; i++) {
        if (text_distance(name, entries[i].name) > best + 1 || used >= sizeof close) continue;
        int len = snprintf(close + used, sizeof close - used, "%s%s", used > 0 ? ", " : "",
                           entries[i].name);
        used += len > 0 ? (size_t)len : 0;
    }
    return err_set(ERR_ARG, "the zoo has no network '%.40s'; did you mean %s? 'zoo list' shows all",
                   name, close);
}

static Err set_defaults(const ZooEntry *e, const ZooOptions *given, ZooOptions *o) {
    if (given != NULL) *o = *given;
    if (o->batch == 0) o->batch = 1;
    if (o->seed == 0) o->seed = 1;
    if (o->batch < 0 || o->batch > MAX_BATCH)
        return err_set(ERR_ARG, "batch is %" PRId64 "; choose 1 to %d", o->batch, MAX_BATCH);
    if (o->sequence != 0 && e->sequence == 0)
        return err_set(ERR_ARG, "%s has no sequence length; omit it", e->name);
    if (o->sequence == 0) o->sequence = e->sequence;
    if (o->open && strncmp(e->name, "decoder", strlen("decoder")) != 0)
        return err_set(ERR_ARG, "%s has no cache: no length could stay open", e->name);
    if (o->sequence < 0 || o->sequence > MAX_SEQUENCE)
        return err_set(ERR_ARG, "sequence is %" PRId64 "; choose 1 to %d", o->sequence,
                       MAX_SEQUENCE);
    return ERR_OK;
}

Err zoo_build(const char *name, const ZooOptions *o, Model *m) {
    const ZooEntry *e = zoo_find(name);
    if (e == NULL) return unknown(name);
    ZooOptions all = {0};
    TRY(set_defaults(e, o, &all));
    TRY(model_init(m, e->name));
    m->opset = 17;
    NetBuilder n;
    net_init(&n, m->graph, all.seed);
    e->build(&n, &all);
    return ERR_OK;
}

uint32_t part_image(NetBuilder *n, const ZooOptions *o, int64_t channels, int64_t size) {
    int64_t dims[4] = {o->batch, channels, size, size};
    return net_input(n, "image", DT_F32, 4, dims);
}

void part_classifier(NetBuilder *n, uint32_t x, const char *name) {
    x = net_flatten(n, net_global_pool(n, x));
    net_output(n, net_linear(n, name, x, 1000), "logits");
}

uint32_t part_squeeze_excite(NetBuilder *n, uint32_t x, int64_t squeezed, NetActivation inner,
                             NetActivation gate) {
    NetConv  down = {.out = squeezed, .bias = true};
    NetConv  up = {.out = net_dim(n, x, 1), .bias = true};
    uint32_t s = net_activation(n, inner, net_conv(n, "fc1", net_global_pool(n, x), down));
    return net_mul(n, x, net_activation(n, gate, net_conv(n, "fc2", s, up)));
}
