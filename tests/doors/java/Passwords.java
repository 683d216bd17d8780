package authenticating;

import javax.security.sasl.AuthenticationException;

import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/** Authenticates who gives his own name backwards, for a Thrift server with `hive.server2.authentication=CUSTOM`. */
public final class Passwords implements PasswdAuthenticationProvider {
    @Override
    public void Authenticate(String user, String password) throws AuthenticationException {
        if (!new StringBuilder(user).reverse().toString().equals(password)) {
            throw new AuthenticationException("wrong password");
        }
    }
}
