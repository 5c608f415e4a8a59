// Opens a compiled model, prints its signature, runs it on random numbers and prints the first results.
#include <lathe.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  fprintf(stderr, "%s %s\n", lathe_last_error()->message, lathe_last_error()->node);
  return 1;
}

static void print_port(const char* what, const LatheValueInfo* port) {
  printf("%s %s: [", what, port->name);
  for (int i = 0; i < port->rank; ++i)
    if (port->dims[i] >= 0)
      printf(" %lld", (long long)port->dims[i]);
    else
      printf(" %s", port->symbols[i]);
  printf(" ] of %d-bit elements\n", port->dtype.bits);
}

// A tensor for an input; symbolic dims are 1. Floats are random in [0, 1), all else is zero.
static DLTensor make_input(const LatheValueInfo* port) {
  DLTensor x = {NULL, {kDLCPU, 0}, port->rank, port->dtype, calloc(port->rank + 1, sizeof(int64_t)), NULL, 0};
  size_t count = 1;
  for (int i = 0; i < port->rank; ++i) count *= x.shape[i] = port->dims[i] >= 0 ? port->dims[i] : 1;
  x.data = calloc(count + 1, (port->dtype.bits + 7) / 8);
  if (port->dtype.code == kDLFloat && port->dtype.bits == 32)
    for (size_t i = 0; i < count; ++i) ((float*)x.data)[i] = rand() / (RAND_MAX + 1.0f);
  return x;
}

int main(int argc, char** argv) {
  LatheModel* model;
  LatheContext* context;
  if (lathe_open(argc > 1 ? argv[1] : "model.so", NULL, &model) || lathe_create_context(model, NULL, &context))
    return fail();
  const int inputs = lathe_input_count(model), outputs = lathe_output_count(model);
  DLTensor* x = calloc(inputs + 1, sizeof(DLTensor));
  const DLTensor** given = calloc(inputs + 1, sizeof(DLTensor*));
  DLManagedTensor** y = calloc(outputs + 1, sizeof(DLManagedTensor*));
  for (int i = 0; i < inputs; ++i) {
    print_port("input", lathe_input(model, i));
    x[i] = make_input(lathe_input(model, i));
    given[i] = &x[i];
  }
  if (lathe_run(context, given, inputs, y, outputs)) return fail();
  for (int i = 0; i < outputs; ++i) {
    print_port("output", lathe_output(model, i));
    const DLTensor* t = &y[i]->dl_tensor;
    for (int k = 0;
         k < 8 && t->ndim > 0 && k < t->shape[t->ndim - 1] && t->dtype.code == kDLFloat && t->dtype.bits == 32; ++k)
      printf("  %g\n", ((float*)t->data)[k]);
    y[i]->deleter(y[i]);
  }
  lathe_destroy_context(context);
  lathe_close(model);
  return 0;
}
