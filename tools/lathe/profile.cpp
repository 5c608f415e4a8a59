#include "profile.h"

namespace lathe::tool {

Profile read_profile(LatheContext* context) {
  std::map<std::pair<std::string, std::string>, ProfileLine> lines;
  Profile profile;
  for (int32_t i = 0; i < lathe_profile_count(context); ++i) {
    LatheProfileEntry entry;
    if (lathe_profile_entry(context, i, &entry) != LATHE_OK || entry.calls == 0) continue;
    ProfileLine& line = lines[{entry.name, entry.node}];
    line.name = entry.name;
    line.node = entry.node;
    line.calls += entry.calls;
    line.nanoseconds += entry.nanoseconds;
    profile.nanoseconds += entry.nanoseconds;
  }
  for (auto& [key, line] : lines) profile.lines.push_back(std::move(line));
  std::sort(profile.lines.begin(), profile.lines.end(),
            [](const ProfileLine& a, const ProfileLine& b) { return a.nanoseconds > b.nanoseconds; });
  return profile;
}

}  // namespace lathe::tool
