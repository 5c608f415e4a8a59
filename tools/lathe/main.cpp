// The `lathe` command (entry.h).
#include "entry.h"

int main(int argc, char** argv) { return lathe::tool::run_command(argc, argv); }
