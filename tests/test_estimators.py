"""The estimators against scikit-learn's own contract, textbook formulas and brute force."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from widelimit.estimators import NTKClassifier, NTKRegressor


@parametrize_with_checks([NTKRegressor(), NTKClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
