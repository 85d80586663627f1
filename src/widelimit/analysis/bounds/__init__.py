"""How large can the input-output Jacobian of a wide network be, and how large is it?"""

from ._compare import alpha_threshold as alpha_threshold
from ._compare import ratio as ratio
from ._jacobian import Factor as Factor
from ._jacobian import JacobianBound as JacobianBound
from ._jacobian import jacobian as jacobian
from ._measured import JacobianNorms as JacobianNorms
from ._measured import jacobian_norms as jacobian_norms
from ._random_matrix import SingularValueCheck as SingularValueCheck
from ._random_matrix import SingularValues as SingularValues
from ._random_matrix import check_singular_values as check_singular_values
from ._random_matrix import singular_values as singular_values
