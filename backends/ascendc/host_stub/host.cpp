// Runs an operator's tiling for one call, which is given in lines: each begins with a word that says what it is.
#include "host.h"

namespace {
std::string said;

struct Answer {
    uint64_t status, key, blocks, workspace, bytes;
    const void* data;
    const char* said;
};

gert::Operand read_operand(std::istringstream& words)
{
    int type, format;
    words >> type >> format;
    std::vector<int64_t> sizes;
    for (int64_t size; words >> size;) sizes.push_back(size);
    return {{gert::Shape(sizes)}, {static_cast<ge::DataType>(type), static_cast<ge::Format>(format)}};
}

gert::Attribute read_attribute(std::istringstream& words)
{
    gert::Attribute attribute;
    for (std::string word; words >> word; attribute.text = word) attribute.list.values.push_back(word == "True" ? 1 : atoll(word.c_str()));
    attribute.number = attribute.list.values.empty() ? 0 : attribute.list.values[0];
    attribute.flag = attribute.number != 0;
    return attribute;
}

void read_line(const std::string& line, gert::TilingContext& context)
{
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "operator") words >> context.type;
    else if (what == "device") words >> context.platform.architecture >> context.platform.cores >> context.platform.ub_bytes >> context.is_deterministic;
    else if (what == "input") context.inputs.push_back(read_operand(words));
    else if (what == "output") context.outputs.push_back(read_operand(words));
    else context.attributes.all.push_back(read_attribute(words));
}

ge::graphStatus tile(gert::TilingContext& context)
{
    const stub::Registered functions = stub::registered()[context.type];
    if (!functions.tiling) {
        said = "no tiling is registered for " + context.type;
        return ge::GRAPH_FAILED;
    }
    gert::TilingParseContext parse(context);
    const ge::graphStatus status = functions.parse ? functions.parse(&parse) : ge::GRAPH_SUCCESS;
    return status == ge::GRAPH_SUCCESS ? functions.tiling(&context) : status;
}
}  // namespace

namespace stub {
std::map<std::string, Registered>& registered()
{
    static std::map<std::string, Registered> all;
    return all;
}
void say(const char* file, int line, const std::string& text)
{
    const char* name = strrchr(file, '/');
    said = text + " (" + (name ? name + 1 : file) + ":" + std::to_string(line) + ")";
}
}  // namespace stub

extern "C" const Answer* ascendc_tile(const char* call)
{
    static gert::TilingContext context;
    static Answer answer;
    context = gert::TilingContext();
    said.clear();
    std::istringstream lines(call);
    for (std::string line; std::getline(lines, line);) read_line(line, context);
    const ge::graphStatus status = tile(context);
    answer = {status, context.key, context.blocks, context.workspace[0], context.data.GetDataSize(), context.data.GetData(), said.c_str()};
    return &answer;
}
