"""The paper's experiments, one command each: ``python -m benchmarks.paper EXPERIMENT``.

experiment1  MCCE on the four data sets next to the paper's table, and DiCE and NICE run live
experiment2  K from 10 to 25,000
experiment3  marginals, correlations and the discriminator: are the generated rows realistic?
experiment4  seconds against p, K, n_train and n_test
appendix     categories not binarised, a random forest as model, without the decision, simulated copies of the data
             sets, copies of training rows
all          all of these in sequence

Each prints its tables next to the paper's numbers (`published`) and writes them as CSV and Markdown to
``benchmarks/results``.
"""
