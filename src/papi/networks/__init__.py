"""Networks: an encoder, a linear classifier and, for methods that want one, a projector. `build` knows them by name."""

from papi.networks.build import NETWORKS, Network, Output, build, compile_encoders, require_compiler, require_fitting

__all__ = ["NETWORKS", "Network", "Output", "build", "compile_encoders", "require_compiler", "require_fitting"]
