/* The nanoseconds of one call of a model with one input and one output of 16 floats, from C: calls ARTIFACT ROUNDS.
   A line a round. Compiled and started by bench/calls.py. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lathe.h"

enum { calls_a_round = 20000 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  LatheModel* model;
  LatheContext* context;
  if (argc != 3 || lathe_open(argv[1], NULL, &model) != LATHE_OK ||
      lathe_create_context(model, NULL, &context) != LATHE_OK) {
    fprintf(stderr, "calls: %s\n", argc == 3 ? lathe_last_error()->message : "calls ARTIFACT ROUNDS");
    return 1;
  }
  _Alignas(64) float x[16], y[16];
  for (int i = 0; i < 16; ++i) x[i] = (float)i;
  int64_t shape[] = {16};
  DLTensor input = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}, output = input;
  output.data = y;
  const DLTensor *inputs[] = {&input}, *outputs[] = {&output};
  for (int round = atoi(argv[2]); round > 0; --round) {
    const double start = seconds();
    for (int i = 0; i < calls_a_round; ++i)
      if (lathe_run_into(context, inputs, 1, outputs, 1) != LATHE_OK) {
        fprintf(stderr, "calls: %s\n", lathe_last_error()->message);
        return 1;
      }
    printf("%.1f\n", 1e9 * (seconds() - start) / calls_a_round);
  }
  for (int i = 0; i < 16; ++i)
    if (y[i] != x[i] + x[i]) return 1;
  lathe_destroy_context(context);
  lathe_close(model);
  return 0;
}
