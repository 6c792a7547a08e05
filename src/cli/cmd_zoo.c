// cotenant zoo list, zoo write: the standard networks of the zoo, and their ONNX files.
#include <stdio.h>

#include "base/table.h"
#include "cli/commands.h"
#include "cli/model_args.h"
#include "model/onnx/onnx.h"
#include "model/work.h"
#include "model/zoo/zoo.h"

// Counts the work of a network from its shapes; weights are not generated.
static Err count_work(const ZooEntry *z, Arena *a, Work *w) {
    Model      m = {0};
    ShapeCache shape_cache;
    TRY(zoo_build(z->name, NULL, &m));
    shape_cache_init(&shape_cache, &m, NULL);
    Tensor            *in = arena_new(a, Tensor, m.graph->n_inputs);
    const ShapedGraph *s = NULL;
    for (uint32_t i = 0; i < m.graph->n_inputs; i++)
        in[i] = m.graph->values[m.graph->inputs[i]].type;
    Err e = shape_cache_get(&shape_cache, in, &s);
    if (e == ERR_OK) e = work_total(s, a, w);
    shape_cache_finish(&shape_cache);
    model_finish(&m);
    return e;
}

static Err list_networks(Table *table, Arena *a) {
    static const Column cols[] = {
        {.key = "name", .head = "network"},
        {.key = "input", .head = "input"},
        {.key = "macs", .head = "MMAC", .scale = 1e6},
        {.key = "params", .head = "M params", .scale = 1e6, .decimals = 2},
        {.key = "about", .head = "about"},
    };
    table_init(table, a, cols, 5);
    for (size_t i = 0; zoo_entry(i) != NULL; i++) {
        const ZooEntry *z = zoo_entry(i);
        Work            w = {0};
        TRY(count_work(z, a, &w));
        table_row(table);
        table_text(table, z->name);
        table_text(table, z->input);
        table_int(table, w.macs);
        table_int(table, w.params);
        table_text(table, z->about);
    }
    return ERR_OK;
}

int cmd_zoo_list(const Command *c, int argc, char **argv) {
    bool         json = false;
    const ArgRow rows[] = {
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    int code = args_parse(c, rows, 1, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    Arena   a = {0};
    Table   table;
    json_t *list = NULL;
    Err     e = arena_init_growing(&a, 1 << 20, (size_t)1 << 32);
    if (e == ERR_OK) e = list_networks(&table, &a);
    if (e == ERR_OK) e = json ? table_json(&table, &list) : table_print(&table, stdout);
    code = e != ERR_OK ? command_failed(e)
           : json      ? command_json(json_pack("{s:o}", "networks", list))
                       : 0;
    arena_finish(&a);
    return code;
}

int cmd_zoo_write(const Command *c, int argc, char **argv) {
    ModelArgs    o = MODEL_ARGS_DEFAULT;
    bool         open = false;
    const ArgRow rows[] = {MODEL_ARG_ROWS(o),
                           {"open", ARG_FLAG, &open, NULL,
                            "leave the lengths of a decoder's prompt and cache open", 0, 0}};
    const char  *rest[2];
    int          code = args_parse(c, rows, 4, argc, argv, rest, 2, 2, NULL);
    if (code >= 0) return code;
    ZooOptions z = {
        .batch = o.batch, .sequence = o.sequence, .seed = (uint64_t)o.seed, .open = open};
    Model m = {0};
    Err   e = zoo_build(rest[0], &z, &m);
    if (e == ERR_OK) e = onnx_write(&m, rest[1]);
    model_finish(&m);
    if (e != ERR_OK) return command_failed(e);
    fprintf(stderr, "wrote %s\n", rest[1]);
    return 0;
}
