#include "profile.h"

namespace lathe::tool {

void add(Profile& profile, const Profile& more) {
  std::map<std::pair<std::string, std::string>, ProfileLine> lines;
  for (const Profile* part : {&std::as_const(profile), &more})
    for (const ProfileLine& from : part->lines) {
      ProfileLine& line = lines[{from.name, from.node}];
      line.name = from.name;
      line.node = from.node;
      line.calls += from.calls;
      line.nanoseconds += from.nanoseconds;
    }
  profile.nanoseconds += more.nanoseconds;
  profile.lines.clear();
  for (auto& [key, line] : lines) profile.lines.push_back(std::move(line));
  std::sort(profile.lines.begin(), profile.lines.end(),
            [](const ProfileLine& a, const ProfileLine& b) { return a.nanoseconds > b.nanoseconds; });
}

std::vector<driver::InstructionTime> read_instructions(LatheContext* context) {
  std::vector<driver::InstructionTime> times;
  for (int32_t i = 0; i < lathe_profile_count(context); ++i) {
    LatheProfileEntry entry;
    if (lathe_profile_entry(context, i, &entry) != LATHE_OK || entry.calls == 0) continue;
    times.push_back({entry.name, entry.node, entry.calls, entry.nanoseconds});
  }
  return times;
}

Profile read_profile(LatheContext* context) {
  Profile entries, profile;
  for (driver::InstructionTime& each : read_instructions(context)) {
    entries.lines.push_back({std::move(each.name), std::move(each.node), each.calls, each.nanoseconds});
    entries.nanoseconds += each.nanoseconds;
  }
  add(profile, entries);
  return profile;
}

}  // namespace lathe::tool
