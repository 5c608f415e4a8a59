// How the sanitizers take what these tests do on purpose: memory that is refused, and threads in children of a fork.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#elif __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1:die_after_fork=0"; }
#endif
#endif
