send_r_sampler <- function(sampler) NULL
