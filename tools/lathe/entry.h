// The `lathe` command as a function: the binary's main and `python -m lathe` are this.
#pragma once

namespace lathe::tool {

// Exit codes: 0 done; 1 what was asked cannot be done, for the reason on standard error; 2 the command line itself is
// wrong; 70 a failure of Lathe itself, with a reproducer left behind. `interrupted` is asked now and then; null: never.
int run_command(int argc, const char* const* argv, bool (*interrupted)() = nullptr);

}  // namespace lathe::tool
