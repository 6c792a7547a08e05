// cotenant cluster why: why a pod of a Kubernetes cluster waits, from a running scheduler.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/http_fetch.h"

enum { MOST_BYTES = 8 << 20, NAME = 254 };
static const double timeout_s = 10;

static const json_t *at(const json_t *o, const char *key) { return json_object_get(o, key); }

static const char *text_at(const json_t *o, const char *key) {
    const char *s = json_string_value(at(o, key));
    return s != NULL ? s : "";
}

static double real_at(const json_t *o, const char *key) { return json_number_value(at(o, key)); }

static void print_line(const char *before, const char *text) {
    if (*text == '\0') return;
    http_print_safe(before, text);
    puts("");
}

static void print_head(const json_t *o) {
    http_print_safe("pod ", text_at(o, "namespace"));
    http_print_safe("/", text_at(o, "pod"));
    http_print_safe(": ", text_at(o, "state"));
    http_print_safe(*text_at(o, "node") != '\0' ? " on " : "", text_at(o, "node"));
    if (at(o, "queue") != NULL) printf(" for %.1f s", real_at(at(o, "queue"), "waited_s"));
    puts("");
    if (!json_is_true(at(o, "ours")))
        print_line("it is not this scheduler's: its schedulerName is ", text_at(o, "scheduler"));
    print_line("not supported: ", text_at(o, "unsupported"));
    print_line("why it waits: ", text_at(o, "message"));
    print_line("its last resize: ", text_at(o, "last_resize"));
}

static void print_gang(const json_t *g) {
    if (g == NULL) return;
    http_print_safe("gang ", text_at(g, "name"));
    printf(": %.0f pods exist, %.0f start together\n", real_at(g, "pods"),
           real_at(g, "start_together"));
    print_line("it waits for ", text_at(g, "waits_for"));
}

static void print_queue(const json_t *q) {
    if (q == NULL) return;
    http_print_safe("queue: ", text_at(q, "name"));
    if (at(q, "place") != NULL)
        printf(", number %.0f of %.0f waiting jobs", real_at(q, "place"), real_at(q, "of"));
    printf(", %.0f attempts", real_at(q, "attempts"));
    if (at(q, "retry_in_s") != NULL) printf(", next in %.1f s", real_at(q, "retry_in_s"));
    http_print_safe(*text_at(q, "policy") != '\0' ? ", policy " : "", text_at(q, "policy"));
    puts("");
    print_line("last attempt: ", text_at(q, "last_attempt"));
}

static void print_help(const json_t *list) {
    if (json_array_size(list) == 0) return;
    puts("\nwhat would help");
    for (size_t i = 0; i < json_array_size(list); i++)
        print_line("  - ", text_at(json_array_get(list, i), "text"));
}

static void put_or_missing(Table *t, const json_t *o, const char *key) {
    if (at(o, key) != NULL)
        table_real(t, real_at(o, key));
    else
        table_missing(t);
}

static Err print_beliefs(const json_t *b, Arena *a) {
    static const Column columns[] = {
        {.key = "class", .head = "believed class"},
        {.key = "work_left_s", .head = "believed work left", .unit = "s", .decimals = 1},
        {.key = "work_left_log_sd", .head = "+- log", .decimals = 2},
        {.key = "rate", .head = "speed", .decimals = 3},
        {.key = "rate_log_sd", .head = "+- log", .decimals = 2},
        {.key = "measured_rate", .head = "measured", .decimals = 3},
        {.key = "progress_from", .head = "progress from"}};
    Table t;
    if (json_object_size(b) == 0) return ERR_OK;
    table_init(&t, a, columns, 7);
    table_row(&t);
    table_text(&t, text_at(b, "class"));
    for (uint32_t i = 1; i < 6; i++) put_or_missing(&t, b, columns[i].key);
    table_text(&t, text_at(b, "progress_from"));
    puts("");
    return table_print(&t, stdout);
}

static Err print_refusals(const json_t *o, Arena *a) {
    static const Column columns[] = {{.key = "nodes", .head = "nodes"},
                                     {.key = "reason", .head = "refused because"},
                                     {.key = "least_short_of", .head = "at least short of"},
                                     {.key = "example", .head = "for example"},
                                     {.key = "detail", .head = "there"}};
    const json_t       *list = at(o, "refused_by");
    Table               t;
    size_t              i;
    json_t             *row;
    if (json_array_size(list) == 0) return ERR_OK;
    table_init(&t, a, columns, 5);
    json_array_foreach((json_t *)list, i, row) {
        table_row(&t);
        table_int(&t, json_integer_value(at(row, "nodes")));
        for (uint32_t k = 1; k < 5; k++) table_text(&t, text_at(row, columns[k].key));
    }
    puts("");
    return table_print(&t, stdout);
}

static Err print_all(const json_t *o, Arena *a) {
    print_head(o);
    print_gang(at(o, "gang"));
    print_queue(at(o, "queue"));
    TRY(print_refusals(o, a));
    print_help(at(o, "would_help"));
    return print_beliefs(at(o, "beliefs"), a);
}

// "/why/NAMESPACE/POD" of "NAMESPACE/POD"; the namespace is "default" without one.
static Err path_of(const char *pod, char *out, size_t size) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    const char       *slash = strchr(pod, '/'), *name = slash != NULL ? slash + 1 : pod;
    size_t            before = slash != NULL ? (size_t)(slash - pod) : 0;
    if (*name == '\0' || strlen(name) >= NAME || before >= NAME || (slash != NULL && before == 0) ||
        name[strspn(name, plain)] != '\0' || (slash != NULL && strspn(pod, plain) != before))
        return err_set(ERR_ARG, "'%.300s' is no pod: write NAMESPACE/POD", pod);
    (void)snprintf(out, size, "/why/%.*s/%s", slash != NULL ? (int)before : 7,
                   slash != NULL ? pod : "default", name);
    return ERR_OK;
}

static Err query(const char *url, const char *pod, Arena *a, json_t **out) {
    char      path[2 * NAME + 16];
    Str       text;
    HttpFetch v = {.arena = a};
    TRY(path_of(pod, path, sizeof path));
    TRY(http_fetch(url, path, timeout_s, MOST_BYTES, &v));
    TRY(http_fetch_result(url, "scheduler", &v, &text));
    TRY(json_parse(url, text.at, text.len, out));
    if (json_is_string(at(*out, "pod")) && json_is_string(at(*out, "state"))) return ERR_OK;
    json_decref(*out);
    *out = NULL;
    return err_set(ERR_INVALID, "%s is not cotenant's Kubernetes scheduler", url);
}

int cmd_cluster_why(const Command *c, int argc, char **argv) {
    const char  *url = "http://127.0.0.1:10260", *pod = NULL;
    bool         json = false;
    const ArgRow rows[] = {{"url", ARG_TEXT, &url, "URL",
                            "--listen address of the scheduler (default http://127.0.0.1:10260)", 0,
                            0},
                           {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0}};
    uint32_t     n_rest = 0;
    int          code = args_parse(c, rows, 2, argc, argv, &pod, 1, 1, &n_rest);
    if (code >= 0) return code;
    Arena   a = {0};
    json_t *o = NULL;
    Err     e = arena_init(&a, (size_t)64 << 20);
    if (e == ERR_OK) e = query(url, pod, &a, &o);
    if (e == ERR_OK && json) {
        code = command_json(o);
    } else if (e == ERR_OK) {
        e = print_all(o, &a);
        json_decref(o);
    }
    if (e != ERR_OK) code = command_failed(e);
    arena_finish(&a);
    return code < 0 ? 0 : code;
}
