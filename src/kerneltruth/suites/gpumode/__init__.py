"""Problems of GPU MODE's leaderboards, judged by their own references."""
