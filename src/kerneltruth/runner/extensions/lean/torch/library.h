// Kept from torch/types.h, which uses nothing of it.
#pragma once
