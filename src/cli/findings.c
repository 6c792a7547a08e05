#include "cli/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

static const char *const words[] = {"ok", "warning", "problem"};

void findings_add(Findings *f, FindingKind kind, const char *of, const char *fmt, ...) {
    char     text[1024];
    va_list  ap;
    Finding *x = arena_try_new(f->arena, Finding, 1);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    char *copy = arena_try_new(f->arena, char, strlen(text) + 1);
    f->n[kind]++;
    if (x == NULL || copy == NULL) return;
    memcpy(copy, text, strlen(text) + 1);
    *x = (Finding){.kind = kind, .of = of, .text = copy};
    if (f->last != NULL)
        f->last->next = x;
    else
        f->first = x;
    f->last = x;
}

void findings_failed(Findings *f, const char *of, Err e) {
    findings_add(f, FINDING_PROBLEM, of, "%s", err_why()[0] != '\0' ? err_why() : err_text(e));
}

static int print_json(const Findings *f) {
    json_t *list = json_array();
    for (const Finding *x = f->first; x != NULL; x = x->next)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "state", words[x->kind], "of", x->of,
                                              "text", x->text));
    return command_json(json_pack("{s:b,s:i,s:i,s:o}", "ok", f->n[FINDING_PROBLEM] == 0, "problems",
                                  (int)f->n[FINDING_PROBLEM], "warnings",
                                  (int)f->n[FINDING_WARNING], "findings", list));
}

int findings_print(const Findings *f, bool json) {
    if (json) return print_json(f);
    for (const Finding *x = f->first; x != NULL; x = x->next)
        printf("%-8s %-14s %s\n", words[x->kind], x->of, x->text);
    printf("problems: %u, warnings: %u\n", f->n[FINDING_PROBLEM], f->n[FINDING_WARNING]);
    return 0;
}
