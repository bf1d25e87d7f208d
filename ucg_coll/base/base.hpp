// Facade of ucg_coll/base: the vocabulary that every other folder may use. It includes nothing of
// ours outside this folder.
#pragma once

#include "ucg_coll/base/assert.hpp"
#include "ucg_coll/base/checked.hpp"
#include "ucg_coll/base/hash.hpp"
#include "ucg_coll/base/log.hpp"
#include "ucg_coll/base/size_text.hpp"
#include "ucg_coll/base/status.hpp"
#include "ucg_coll/base/types.hpp"
