// cotenant chip list: the accelerators and packages shipped with the program.
#include <stdio.h>

#include "base/table.h"
#include "chip/package.h"
#include "cli/commands.h"

static Err list_units(Table *t, Arena *a) {
    static const Column cols[] = {
        {.key = "name", .head = "unit"},
        {.key = "flow", .head = "dataflow"},
        {.key = "macs", .head = "multipliers"},
        {.key = "word_bits", .head = "bits"},
        {.key = "clock_mhz", .head = "MHz"},
        {.key = "buffer_bytes", .head = "buffer", .unit = "KB", .scale = 1024},
        {.key = "port", .head = "port", .unit = "B/cycle", .decimals = 1},
        {.key = "depthwise", .head = "depthwise"},
        {.key = "about", .head = "about"},
    };
    table_init(t, a, cols, sizeof cols / sizeof *cols);
    for (uint32_t i = 0; unit_spec_name(i) != NULL; i++) {
        UnitSpec u;
        TRY(unit_spec_load(unit_spec_name(i), a, &u));
        table_row(t);
        table_text(t, u.name);
        table_text(t, u.flow);
        table_real(t, unit_spec_macs(&u));
        table_int(t, u.word_bits);
        table_real(t, u.clock_mhz);
        table_int(t, u.buffer_bytes);
        table_real(t, u.port);
        table_text(t, u.depthwise ? "yes" : "no");
        table_text(t, u.about);
    }
    return ERR_OK;
}

static Err list_packages(Table *t, Arena *a) {
    static const Column cols[] = {
        {.key = "name", .head = "package"},
        {.key = "units", .head = "units"},
        {.key = "bytes_cycle", .head = "memory", .unit = "B/cycle", .decimals = 1},
        {.key = "clock_mhz", .head = "MHz"},
        {.key = "period_us", .head = "T_s", .unit = "us"},
        {.key = "about", .head = "about"},
    };
    table_init(t, a, cols, sizeof cols / sizeof *cols);
    for (uint32_t i = 0; package_name(i) != NULL; i++) {
        Package p;
        TRY(package_load(package_name(i), a, &p));
        table_row(t);
        table_text(t, p.name);
        table_text(t, p.units);
        table_real(t, p.bytes_cycle);
        table_real(t, p.clock_mhz);
        table_real(t, p.period_us);
        table_text(t, p.about);
    }
    return ERR_OK;
}

static int print_json(const Table *units, const Table *packages) {
    json_t *u = NULL, *p = NULL;
    Err     e = table_json(units, &u);
    if (e == ERR_OK) e = table_json(packages, &p);
    if (e == ERR_OK) return command_json(json_pack("{s:o,s:o}", "units", u, "packages", p));
    json_decref(u);
    return command_failed(e);
}

static Err print_tables(const Table *units, const Table *packages) {
    TRY(table_print(units, stdout));
    puts("");
    return table_print(packages, stdout);
}

int cmd_chip_list(const Command *c, int argc, char **argv) {
    bool         json = false;
    const ArgRow rows[] = {{"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0}};
    int          code = args_parse(c, rows, 1, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    Arena a = {0};
    Table units, packages;
    Err   e = arena_init(&a, (size_t)1 << 26);
    if (e == ERR_OK) e = list_units(&units, &a);
    if (e == ERR_OK) e = list_packages(&packages, &a);
    if (e == ERR_OK && !json) e = print_tables(&units, &packages);
    code = e != ERR_OK ? command_failed(e) : json ? print_json(&units, &packages) : 0;
    arena_finish(&a);
    return code;
}
