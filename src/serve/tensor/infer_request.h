// InferRequest, InferResponse: one inference as clients send and receive it, for REST and gRPC.
#pragma once

#include <stdbool.h>
#include <sys/uio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

enum { INFER_TENSORS = 256 };  // most inputs, and most outputs, of a request

typedef struct InferTensor {
    Str    name;
    Tensor t;  // BYTES: DT_STR with Str elements
} InferTensor;

typedef struct InferRequestedOutput {
    Str     name;
    bool    binary, has_binary;  // has_binary: `binary` was given for this output
    int64_t classes;             // classification: the highest values to report; 0: the tensor
} InferRequestedOutput;

typedef struct InferRequest {  // lives in the body and the arena it was decoded with
    Str     model, version;    // gRPC only; REST has them in the path
    Str     id;
    int64_t timeout_us;  // parameters.timeout; -1: not given
    int64_t priority;    // parameters.priority, 1 is highest; 0: the model's
    bool    timing;      // parameters.timing: report timing in the response
    bool    binary;      // default for outputs
    bool raw_body;  // the body is the data of the only input; inputs[0] has neither name nor type
    bool raw;       // gRPC: the request has raw contents; responses always do
    InferTensor          *inputs;
    InferRequestedOutput *requested;  // [n_requested]; none: all outputs
    uint32_t              n_inputs, n_requested;
} InferRequest;

typedef struct TensorSpec {  // declared input or output of a model
    const char *name;
    Tensor      type;  // without data; open dimensions are DIM_UNKNOWN
    bool        optional;
    bool        reshaped;  // clients see `type`; the model has `own`
    Tensor      own;
    const Str  *labels;  // [n_labels] names of the classes, by index; outputs only
    uint32_t    n_labels;
} TensorSpec;

typedef struct ModelSignature {
    const TensorSpec *inputs, *outputs;
    uint32_t          n_inputs, n_outputs;
} ModelSignature;

typedef struct InferParameter {  // of a response
    const char *key;
    const char *text;  // NULL: use number
    double      number;
    bool        is_flag;  // number is 0 or 1 and means false or true
} InferParameter;

typedef struct InferResponse {
    const char           *model, *version;
    Str                   id;
    const TensorSpec     *specs;    // [n] outputs
    const Tensor         *tensors;  // [n]
    const bool           *binary;   // [n]
    uint32_t              n;
    const InferParameter *parameters;
    uint32_t              n_parameters;
} InferResponse;

// The protocol's name of a data type, such as "FP32"; NULL, or DT_NONE: there is none.
const char *infer_type_name(DType t);
DType       infer_dtype(Str name);

enum { INFER_PRINTABLE = 80 };
// A client's text for an error message: cut to fit, control characters and invalid UTF-8 replaced.
// Returns out.
const char *infer_printable(Str name, char out[INFER_PRINTABLE]);

// Checks names, types and shapes of a request's inputs and puts them into the model's order:
// inputs[signature->n_inputs]. ERR_INVALID with a message for the client.
MUST_USE Err infer_bind_inputs(const ModelSignature *signature, const InferRequest *r, Arena *a,
                               Tensor *inputs);
// Gives an input the shape that the model has (inward), or an output that for clients, where
// config.pbtxt reshapes it: dimensions that are open in one are, in order, those open in the other.
// ERR_INVALID: it does not have the shape that is reshaped.
MUST_USE Err infer_apply_reshape(const TensorSpec *spec, bool inward, Tensor *t);
// All inputs, after infer_bind_inputs.
void infer_reshape_inputs(const ModelSignature *signature, Tensor *inputs);
// Outputs to send: index into signature->outputs, and whether binary; both [n <= n_outputs].
MUST_USE Err infer_select_outputs(const ModelSignature *signature, const InferRequest *r,
                                  uint32_t *index, bool *binary, uint32_t *n);

// REST (rest/infer_json_*.c). header: bytes of JSON at the start of the body, SIZE_MAX: all.
// Aligned binary data stays in the body. ERR_PARSE, ERR_INVALID: 400. ERR_LIMIT: 413.
MUST_USE Err infer_json_decode(unsigned char *body, size_t len, size_t header, Arena *a,
                               InferRequest *out);
// pieces[EXCHANGE_PIECES]: JSON and binary outputs, in memory of a or of the tensors. *header:
// bytes of JSON if binary outputs follow, else SIZE_MAX.
MUST_USE Err infer_json_encode(const InferResponse *r, size_t most, Arena *a, struct iovec *pieces,
                               uint32_t *n_pieces, size_t *header);

// Adds a parameter that is true or false to a response. ERR_LIMIT: out of memory.
MUST_USE Err infer_add_flag(InferResponse *r, const char *key, bool value, Arena *a);

// gRPC (grpc/infer_proto_*.c): ModelInferRequest and ModelInferResponse, without the frame prefix.
MUST_USE Err infer_proto_decode(const unsigned char *message, size_t len, Arena *a,
                                InferRequest *out);
// Outputs are raw contents whatever the inputs were, as Triton's clients expect.
MUST_USE Err infer_proto_encode(const InferResponse *r, size_t most, Arena *a, struct iovec *pieces,
                                uint32_t *n_pieces);

// Binary tensor data, little-endian. t has type and shape; its data is bytes itself if aligned,
// else a copy in a. ERR_INVALID: it does not match the shape.
MUST_USE Err infer_read_binary(Tensor *t, unsigned char *bytes, size_t len, size_t align, Arena *a);
