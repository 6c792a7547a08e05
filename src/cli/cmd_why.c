// cotenant why: why a request was late, from the server's request history.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/http_fetch.h"

enum { MOST_BYTES = 32 << 20, READY_BYTES = 1 << 16, ID_MOST = 256, NOT_READY = 503 };
static const double timeout_s = 10;

// Whether the server loads models still, or stops: then a history without misses says nothing.
static bool is_loading(const char *url, Arena *a) {
    HttpFetch v = {.arena = a};
    return http_fetch(url, "/v2/health/ready", timeout_s, READY_BYTES, &v) == ERR_OK &&
           v.fault[0] == '\0' && v.status == NOT_READY;
}

static const char *text_at(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static double ms_at(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static void print_head(const json_t *o) {
    http_print_safe("request ", text_at(o, "id"));
    http_print_safe(" of model ", text_at(o, "model"));
    http_print_safe(" version ", text_at(o, "version"));
    http_print_safe(", ", text_at(o, "end"));
    http_print_safe(", deadline ", text_at(o, "outcome"));
    printf(": %.3f ms", ms_at(o, "latency_ms"));
    if (json_object_get(o, "deadline_ms") != NULL) printf(" of %.3f", ms_at(o, "deadline_ms"));
    puts("");
    if (*text_at(o, "why") != '\0') http_print_safe("why: ", text_at(o, "why"));
    if (*text_at(o, "why") != '\0') puts("");
    if (*text_at(o, "advice") != '\0') http_print_safe("what would help: ", text_at(o, "advice"));
    if (*text_at(o, "advice") != '\0') puts("");
    puts("");
}

static void add_stage(Table *t, const json_t *from, const char *key, const char *name, double whole,
                      const char *about) {
    double ms = ms_at(from, key);
    table_row(t);
    table_text(t, name);
    table_real(t, ms);
    if (whole > 0)
        table_real(t, 100 * ms / whole);
    else
        table_missing(t);
    table_text(t, about);
}

static Err print_stages(const json_t *o, Arena *a) {
    static const Column columns[] = {{.key = "stage", .head = "stage"},
                                     {.key = "ms", .head = "time", .unit = "ms", .decimals = 3},
                                     {.key = "share", .head = "of all", .unit = "%", .decimals = 1},
                                     {.key = "about", .head = ""}};
    const json_t       *stages = json_object_get(o, "stages"),
                 *within = json_object_get(o, "within_compute");
    const char *behind = text_at(o, "behind"), *paused_by = text_at(o, "paused_by");
    double      whole = ms_at(o, "latency_ms");
    Table       t;
    table_init(&t, a, columns, 4);
    add_stage(&t, stages, "decode_ms", "decode", whole, "");
    add_stage(&t, stages, "compile_ms", "compile", whole, "");
    add_stage(&t, stages, "queue_ms", "queue", whole,
              *behind != '\0' ? arena_printf(a, "behind %.128s", behind) : "");
    add_stage(&t, stages, "compute_ms", "compute", whole, "");
    if (within != NULL) {
        add_stage(&t, within, "interference_ms", "  interference", whole,
                  "co-runners' use of caches and memory");
        add_stage(&t, within, "core_shortage_ms", "  core shortage", whole,
                  "fewer cores than the policy wanted");
        add_stage(&t, within, "stolen_ms", "  stolen", whole, "the system ran something else");
    }
    add_stage(&t, stages, "paused_ms", "paused", whole,
              *paused_by != '\0' ? arena_printf(a, "for %.128s", paused_by) : "");
    add_stage(&t, stages, "answer_ms", "answer", whole, "");
    return table_print(&t, stdout);
}

static Err print_misses(const json_t *list, const char *url, Arena *a) {
    static const Column columns[] = {
        {.key = "id", .head = "request"},
        {.key = "model", .head = "model"},
        {.key = "end", .head = "end"},
        {.key = "ms", .head = "time", .unit = "ms", .decimals = 1},
        {.key = "deadline_ms", .head = "deadline", .unit = "ms", .decimals = 1},
        {.key = "cause", .head = "cause"},
        {.key = "why", .head = "why"}};
    Table   t;
    size_t  i;
    json_t *o;
    if (json_array_size(list) == 0) {
        puts(is_loading(url, a) ? "the server is not ready: it loads its models, or stops; no "
                                  "request in its history missed its deadline"
                                : "no request in the server's history missed its deadline");
        return ERR_OK;
    }
    table_init(&t, a, columns, 7);
    json_array_foreach(list, i, o) {
        table_row(&t);
        table_text(&t, text_at(o, "id"));
        table_text(&t, text_at(o, "model"));
        table_text(&t, text_at(o, "end"));
        table_real(&t, ms_at(o, "latency_ms"));
        table_real(&t, ms_at(o, "deadline_ms"));
        table_text(&t, text_at(o, "cause"));
        table_text(&t, text_at(o, "why"));
    }
    return table_print(&t, stdout);
}

// "/why/ID", percent-encoded.
static Err path_of(const char *id, int64_t misses, char *out, size_t size) {
    if (id == NULL) {
        (void)snprintf(out, size, "/why?misses=%lld", (long long)misses);
        return ERR_OK;
    }
    if (*id == '\0' || strlen(id) > ID_MOST)
        return err_set(ERR_ARG, "a request ID has 1 to %d characters", ID_MOST);
    size_t n = (size_t)snprintf(out, size, "/why/");
    for (; *id != '\0'; id++) {
        bool plain = isalnum((unsigned char)*id) || strchr("-_~", *id) != NULL;
        n += (size_t)snprintf(out + n, size - n, plain ? "%c" : "%%%02X", (unsigned char)*id);
    }
    return ERR_OK;
}

static Err query(const char *url, const char *id, int64_t misses, Arena *a, json_t **out) {
    char      path[4 * ID_MOST];
    Str       text;
    HttpFetch v = {.arena = a};
    TRY(path_of(id, misses, path, sizeof path));
    TRY(http_fetch(url, path, timeout_s, MOST_BYTES, &v));
    TRY(http_fetch_result(url, "server", &v, &text));
    TRY(json_parse(url, text.at, text.len, out));
    bool fits = id != NULL ? json_is_object(*out) : json_is_array(*out);
    if (fits) return ERR_OK;
    json_decref(*out);
    return err_set(ERR_INVALID, "%s is not a cotenant server", url);
}

int cmd_why(const Command *c, int argc, char **argv) {
    const char  *url = "http://127.0.0.1:8002", *id = NULL;
    int64_t      misses = 0;
    bool         json = false;
    const ArgRow rows[] = {{"url", ARG_TEXT, &url, "URL",
                            "metrics address of the server (default http://127.0.0.1:8002)", 0, 0},
                           {"misses", ARG_INT, &misses, "N",
                            "the last N requests that missed their deadline", 1, 1000},
                           {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0}};
    uint32_t     n_rest = 0;
    int          code = args_parse(c, rows, 3, argc, argv, &id, 0, 1, &n_rest);
    if (code >= 0) return code;
    if ((n_rest == 0) == (misses == 0))
        return args_fail(EXIT_USAGE, "give a request ID, or --misses N");
    Arena   a = {0};
    json_t *o = NULL;
    Err     e = arena_init(&a, (size_t)256 << 20);
    if (e == ERR_OK) e = query(url, n_rest > 0 ? id : NULL, misses, &a, &o);
    if (e == ERR_OK && json) {
        code = command_json(o);
    } else if (e == ERR_OK) {
        if (n_rest > 0) print_head(o);
        e = n_rest > 0 ? print_stages(o, &a) : print_misses(o, url, &a);
        json_decref(o);
    }
    if (e != ERR_OK) code = command_failed(e);
    arena_finish(&a);
    return code < 0 ? 0 : code;
}
