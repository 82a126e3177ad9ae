import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Reads lines of a pattern and texts (Base64 of UTF-8), answers a line: x, or 0 and 1 per text. */
public class JavaFinds {
  public static void main(String[] args) throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    PrintStream out = new PrintStream(System.out, false, "US-ASCII");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", -1);
      StringBuilder answer = new StringBuilder();
      try {
        Pattern pattern = Pattern.compile(text(words[0]));
        for (int i = 1; i < words.length; i++) {
          answer.append(pattern.matcher(text(words[i])).find() ? '1' : '0');
        }
      } catch (PatternSyntaxException e) {
        answer.append('x');
      }
      out.println(answer);
    }
    out.flush();
  }

  private static String text(String word) {
    return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
  }
}
