#include "node/mix.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

typedef enum MixClass { LIGHT = 1, MEDIUM = 2, HEAVY = 4 } MixClass;

typedef struct Row {
    MixClass class;
    const char *server;
    int64_t     server_sequence;
    const char *here;
    int64_t     here_sequence;
    int64_t     qos_ms;
} Row;

static const Row rows[] = {
#define X(...) {__VA_ARGS__},
#include "node/mix.def"
#undef X
};

static const struct {
    const char *name;
    unsigned    classes;
} mixes[] = {
    {"light", LIGHT},
    {"medium", MEDIUM},
    {"heavy", HEAVY},
    {"mix", LIGHT | MEDIUM | HEAVY},
};
enum { N_ROWS = sizeof rows / sizeof *rows, N_MIXES = sizeof mixes / sizeof *mixes };

const char *mix_name(uint32_t i) { return i < N_MIXES ? mixes[i].name : NULL; }

static MixTenant tenant(const Row *r, MixPlace place) {
    if (place == MIX_HERE)
        return (MixTenant){.network = r->here, .sequence = r->here_sequence, .share = 1};
    return (MixTenant){r->server, r->server_sequence, r->qos_ms * 1000000, 1};
}

static Err unknown(const char *name) {
    const char *names[N_MIXES];
    char        hint[TEXT_MEANT];
    for (uint32_t i = 0; i < N_MIXES; i++) names[i] = mixes[i].name;
    return err_set(ERR_ARG, "no mix '%s'; %s", name,
                   text_meant(name, names, N_MIXES,
                              "there are light, medium, heavy and mix; compare also takes all",
                              hint));
}

Err mix_find(const char *name, MixPlace place, Mix *out) {
    uint32_t m = 0;
    while (m < N_MIXES && strcmp(mixes[m].name, name) != 0) m++;
    if (m == N_MIXES) return unknown(name);
    *out = (Mix){.name = mixes[m].name};
    for (uint32_t i = 0; i < N_ROWS; i++)
        if ((rows[i].class & mixes[m].classes) != 0)
            out->tenants[out->n++] = tenant(&rows[i], place);
    CHECK(out->n > 0 && out->n <= MIX_TENANTS);
    return ERR_OK;
}

TimeNs mix_qos(TimeNs alone, double slack) {
    double us = ceil((double)alone * slack / 1e3);
    return us > 1 ? (TimeNs)us * 1000 : 1000;
}
