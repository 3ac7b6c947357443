"""What spmilp reaches, as one page of the documentation, from figures that are kept."""
