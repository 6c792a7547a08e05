// Repository: finds models in folders laid out as MODEL/VERSION/model.onnx, and bare ONNX files.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { REPOSITORY_MODELS = 1024, REPOSITORY_VERSIONS = 256 };

typedef struct RepositoryVersion {
    uint64_t    number;  // at least 1
    const char *path;    // ONNX file, or zoo:NAME
} RepositoryVersion;

typedef struct RepositoryModel {
    const char         *name;
    RepositoryVersion  *versions;  // [n_versions] by number
    uint32_t            n_versions;
    const char         *pbtxt;     // path of its config.pbtxt; NULL: none
    const struct Pbtxt *declared;  // its contents; NULL: none, or broken
    const char         *broken;    // why it cannot be served; NULL: it can
} RepositoryModel;

typedef struct Repository {
    Arena           *arena;
    RepositoryModel *models;  // [n]
    uint32_t         n, room;
    bool             strict;  // unknown fields in config.pbtxt are errors
    void (*warn)(void *self, const char *text);
    void *self;
} Repository;

// A folder of models, or the folder of one model. Other entries are skipped with a warning.
MUST_USE Err repository_scan(Repository *r, const char *folder);
// The folder of one model, served under a name.
MUST_USE Err repository_model(Repository *r, const char *folder, const char *name);
// A file or zoo:NAME, served under a name as version 1.
MUST_USE Err repository_file(Repository *r, const char *path, const char *name);

bool repository_version(const char *text,
                        uint64_t   *out);  // a positive integer without leading zeros
