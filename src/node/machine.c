#include "node/machine.h"

#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/yamldoc.h"

enum { FILE_MOST = 1 << 16, NAMES_MOST = 32 };

static const Setting rows[] = {
#define X(...) SETTING_ROW(NodeMachineSpec, __VA_ARGS__)
    NODE_MACHINE_SPEC(X)
#undef X
};

Settings machine_settings(NodeMachineSpec *spec, Arena *a) {
    return (Settings){rows, sizeof rows / sizeof *rows, spec, a};
}

// A machine file must be complete: a missing value would silently be another machine's.
static Err check_whole(const char *name, const char *text, size_t len, Arena *a) {
    static const char *const optional[] = {"interference_us", "hysteresis", "reserved", "move_gbs"};
    YamlDocKey              *keys = NULL;
    size_t                   n = 0;
    TRY(yamldoc_keys(name, text, len, a, &keys, &n));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof optional / sizeof *optional; k++)
            found = found || strcmp(rows[i].key, optional[k]) == 0;
        for (size_t k = 0; k < n && !found; k++) found = strcmp(keys[k].key, rows[i].key) == 0;
        if (!found)
            return err_set(ERR_CONFIG, "%s:%zu: ends without '%s' (%s); add a line", name,
                           n > 0 ? keys[n - 1].line : 1, rows[i].key, rows[i].about);
    }
    return ERR_OK;
}

static Err check_sense(const char *name, const NodeMachineSpec *s) {
    const Isa *isa = NULL;
    if (s->reserved >= s->cores)
        return err_set(ERR_CONFIG, "%s: reserves %d of %d cores; leave one for layers", name,
                       s->reserved, s->cores);
    if (s->dram_all_gbs < s->dram_gbs)
        return err_set(ERR_CONFIG, "%s: dram_all_gbs is below dram_gbs; it is of all cores", name);
    Err e = machine_isa(s, &isa);
    return e == ERR_OK ? e : err_add(e, "%s", name);
}

Err machine_parse(const char *name, const char *text, size_t len, Arena *a, NodeMachineSpec *out) {
    NodeMachineSpec spec;
    Settings        s = machine_settings(&spec, a);
    size_t          mark = a->used;
    settings_default(&s);
    TRY(check_whole(name, text, len, a));
    arena_rewind(a, mark);
    TRY(settings_parse(&s, name, text, len));
    TRY(check_sense(name, &spec));
    *out = spec;
    return ERR_OK;
}

static Err unknown(const char *what, Arena *a) {
    const char *names[NAMES_MOST];
    char       *list = arena_str(a, "use one of "), hint[TEXT_MEANT];
    size_t      n = 0;
    for (const MachineFile *f = machine_files; f->name != NULL && n < NAMES_MOST; f++, n++) {
        names[n] = f->name;
        list = arena_printf(a, "%s%s, ", list, f->name);
    }
    list = arena_printf(a, "%sor the path of a YAML file", list);
    return err_set(ERR_ARG, "unknown machine '%.60s'; %s", what,
                   text_meant(what, names, n, list, hint));
}

Err machine_load(const char *what, Arena *a, NodeMachineSpec *out) {
    char  *text = NULL;
    size_t len = 0, n = strlen(what);
    for (const MachineFile *f = machine_files; f->name != NULL; f++)
        if (strcmp(f->name, what) == 0)
            return machine_parse(f->name, f->text, strlen(f->text), a, out);
    bool path = strchr(what, '/') != NULL || (n > 5 && strcmp(what + n - 5, ".yaml") == 0);
    if (!path) return unknown(what, a);
    TRY(file_read(what, FILE_MOST, a, &text, &len));
    return machine_parse(what, text, len, a, out);
}

Err machine_isa(const NodeMachineSpec *s, const Isa **out) {
    static const Isa *const all[] = {
        &isa_baseline,
#ifdef __x86_64__
        &isa_avx2,     &isa_avxvnni, &isa_avx512,
#endif
        NULL,
    };
    for (size_t i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->name, s->isa) == 0) {
            *out = all[i];
            return ERR_OK;
        }
    return err_set(ERR_CONFIG, "isa '%s' is not built in; use baseline, avx2, avxvnni or avx512",
                   s->isa);
}

CacheSizes machine_caches(const NodeMachineSpec *s) {
    return (CacheSizes){.l1 = (size_t)s->l1_kb << 10,
                        .l2 = (size_t)s->l2_kb << 10,
                        .l3 = (size_t)((double)((size_t)s->l3_kb << 10) * s->l3_usable)};
}

NodeMachine machine_view(const NodeMachineSpec *s, Arena *a) {
    uint32_t n = machine_cores(s);
    uint8_t *slice_of = arena_new(a, uint8_t, n);
    for (uint32_t i = 0; i < n; i++) slice_of[i] = (uint8_t)(i / (uint32_t)s->slice_cores);
    return (NodeMachine){.n_cores = n,
                         .n_slices = machine_slices(s, n),
                         .slice_of = slice_of,
                         .slice_bytes = (float)machine_caches(s).l3,
                         .dram_bytes_ns = (float)s->dram_all_gbs,
                         .dispatch_ns = (float)machine_dispatch_ns(s, 1)};
}

// Every count on a small machine; on a large one 1 to 4, even counts up to 16, then steps of
// whole slices, and the whole machine.
uint32_t machine_counts(const NodeMachineSpec *s, uint16_t *counts) {
    uint32_t cores = machine_cores(s), n = 0, coarse = (uint32_t)s->slice_cores;
    bool     small = cores <= NODE_COUNTS;
    while (!small && (cores - 16) / coarse > NODE_COUNTS - 12) coarse *= 2;
    for (uint32_t c = 1; c < cores;) {
        counts[n++] = (uint16_t)c;
        uint32_t step = small || c < 4 ? 1 : c < 16 ? 2 : coarse;
        c = step == coarse ? (c / coarse + 1) * coarse : c + step;
    }
    counts[n++] = (uint16_t)cores;
    return n;
}
