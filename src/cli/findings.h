// Findings: what a check came upon, in order, good and bad, for people and for machines.
#pragma once

#include <stdint.h>

#include "base/arena.h"

typedef enum FindingKind {
    FINDING_OK,
    FINDING_WARNING,
    FINDING_PROBLEM,
    FINDING_KINDS
} FindingKind;

typedef struct Finding {
    FindingKind     kind;
    const char     *of;  // one word: what was looked at
    const char     *text;
    struct Finding *next;
} Finding;

typedef struct Findings {
    Arena   *arena;
    Finding *first, *last;
    uint32_t n[FINDING_KINDS];
} Findings;

void findings_add(Findings *f, FindingKind kind, const char *of, const char *fmt, ...) PRINTF(4, 5);
void findings_failed(Findings *f, const char *of, Err e);  // a problem: this thread's last reason
int  findings_print(const Findings *f, bool json);         // exit code of writing, 0 or not
