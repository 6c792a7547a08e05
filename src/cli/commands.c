#include "cli/commands.h"

#include <stdio.h>

#include "base/cpu.h"
#include "base/json.h"

int command_failed(Err e) {
    int code = e == ERR_ARG ? EXIT_USAGE : e == ERR_CONFIG ? EXIT_CONFIG : EXIT_FAILED;
    return args_fail(code, "%s", err_why()[0] != '\0' ? err_why() : err_text(e));
}

int command_run(Err (*run)(const void *options, Arena *a), const void *options) {
    Arena a = {0};
    Err   e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = run(options, &a);
    int code = e == ERR_OK ? 0 : command_failed(e);
    arena_finish(&a);
    return code;
}

int command_json(json_t *document) {
    if (document == NULL) return args_fail(EXIT_FAILED, "no memory for the JSON document");
    Err e = json_write(stdout, document);
    json_decref(document);
    return e == ERR_OK ? 0 : command_failed(e);
}

json_t *command_shape(const Tensor *t) {
    if (t->rank < 0) return json_null();
    json_t *a = json_array();
    for (int32_t i = 0; i < t->rank; i++) json_array_append_new(a, json_integer(t->dims[i]));
    return a;
}
