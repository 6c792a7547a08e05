// Synth: synthetic traces after published statistics of real clusters, deterministic by seed.
#pragma once

#include "base/rng.h"
#include "base/settings.h"
#include "cluster/job.h"

typedef struct SynthSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
#include "cluster/trace/synth.def"
#undef X
} SynthSettings;

typedef struct SynthFile {  // a settings file of data/traces, embedded
    const char *name, *text;
} SynthFile;

extern const SynthFile synth_files[];  // ends with a NULL name

Settings synth_settings(SynthSettings *s, Arena *a);

// Defaults overridden by a shipped name or a YAML file; NULL: defaults.
MUST_USE Err synth_load(const char *what, Arena *a, SynthSettings *out);
MUST_USE Err synth_make(const SynthSettings *s, Rng rng, Arena *a, JobList *out);
