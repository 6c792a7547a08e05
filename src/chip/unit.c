#include "chip/unit.h"

#include <string.h>

#include "chip/chip_file.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(Unit, __VA_ARGS__)
    UNIT_ROWS(X)
#undef X
};

static Err read_flow(const char *name, Unit *u) {
    static const char *const names[] = {"row_stationary", "weight_stationary", "output_stationary"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(u->flow, names[i]) == 0) {
            u->dataflow = (Dataflow)i;
            return ERR_OK;
        }
    return err_set(ERR_CONFIG,
                   "%s: flow '%s'; give row_stationary, weight_stationary or output_stationary",
                   name, u->flow);
}

static Err check_sense(const char *name, const Unit *u) {
    if (u->dataflow != WEIGHT_STATIONARY && u->vectors * u->lanes != 1)
        return err_set(ERR_CONFIG, "%s: elements of a %s unit have vectors: 1 and lanes: 1", name,
                       u->flow);
    if (strcmp(u->energy, "own") != 0 && strcmp(u->energy, "relative") != 0)
        return err_set(ERR_CONFIG, "%s: energy '%s'; give own or relative", name, u->energy);
    return ERR_OK;
}

// The costs of the Eyeriss paper (ISCA 2016): a multiplication, a small buffer, a neighbour, the
// shared buffer and memory, for a word.
static void relate(Unit *u) {
    double word = u->word_bits / 8.0;
    u->input_pj = u->weight_pj = u->sum_pj = u->mac_pj;
    u->hop_pj = 2 * u->mac_pj;
    u->buffer_pj = 6 * u->mac_pj / word;
    u->memory_pj = 200 * u->mac_pj / word;
}

Err unit_parse(const char *name, const char *text, size_t len, Arena *a, Unit *out) {
    static const char *const optional[] = {"about",     "vectors",    "lanes",
                                           "depthwise", "bank_bytes", "buffer_weights",
                                           "overlap",   "efficiency", "buffer_efficiency",
                                           "lean",      "energy",     NULL};
    Unit                     u = {0};
    Settings                 s = {rows, sizeof rows / sizeof *rows, &u, a};
    settings_default(&s);
    TRY(chip_file_whole(name, text, len, &s, optional));
    TRY(settings_parse(&s, name, text, len));
    TRY(read_flow(name, &u));
    TRY(check_sense(name, &u));
    if (strcmp(u.energy, "relative") == 0) relate(&u);
    *out = u;
    return ERR_OK;
}

Err unit_load(const char *what, Arena *a, Unit *out) {
    const char *name = NULL, *text = NULL;
    size_t      len = 0;
    TRY(chip_file_find(false, what, NULL, a, &name, &text, &len));
    return unit_parse(name, text, len, a, out);
}

const char *unit_name(uint32_t i) { return chip_file_name(false, i); }
