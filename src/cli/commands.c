#include "cli/commands.h"

#include <stdio.h>

int command_failed(Err e) {
    int code = e == ERR_ARG ? EXIT_USAGE : e == ERR_CONFIG ? EXIT_CONFIG : EXIT_FAILED;
    return args_fail(code, "%s", err_why()[0] != '\0' ? err_why() : err_text(e));
}

int command_json(json_t *document) {
    int bad =
        document == NULL ? -1 : json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(document);
    if (bad != 0) return args_fail(EXIT_FAILED, "the JSON document could not be written");
    putchar('\n');
    return 0;
}
