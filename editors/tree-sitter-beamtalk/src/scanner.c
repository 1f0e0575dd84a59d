// Where lines end things: statements, members of classes, classes.
//
// A line end is nothing but space unless the grammar can use one, so brackets need no stack here:
// inside `( )` and collection literals no rule asks for a token of ours. But for the text of strings no
// token has a width.
// What is remembered is the column of the open class and of the open member: a line at or left of
// it ends it, as in section 2.2 of the language reference.

#include "tree_sitter/parser.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum Token {
  NEWLINE,
  MEMBER_START,
  SLOT_START,
  MEMBER_END,
  CLASS_START,
  PROTOCOL_START,
  ALIAS_START,
  EXTENSION_START,
  CLASS_END,
  STRING_CONTENT,
  ALWAYS,
  ERROR_SENTINEL,
};

typedef struct {
  int16_t class_column;
  int16_t member_column;
  // The start of the member was found too late to stand at its head: it stands before the line end above.
  int16_t starts_above;
} Scanner;

#define NONE (-1)
#define WORD_MAX 32

typedef struct {
  char text[WORD_MAX];
  bool is_keyword;
} Word;

static bool is_lower(int32_t c) { return (c >= 'a' && c <= 'z') || c == '_'; }
static bool is_upper(int32_t c) { return c >= 'A' && c <= 'Z'; }
static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_letter(int32_t c) { return is_lower(c) || is_upper(c); }
static bool is_space(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0xFEFF; }
static bool is_operator(int32_t c) { return c != 0 && c < 128 && strchr("+-*/%<>=", (int)c) != NULL; }
static bool is_closer(int32_t c) { return c == ')' || c == ']' || c == '}'; }

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

static int16_t column_here(TSLexer *lexer) {
  uint32_t column = lexer->get_column(lexer);
  return column > INT16_MAX ? INT16_MAX : (int16_t)column;
}

static bool is_one_of(const char *text, const char *const *words) {
  for (; *words; words++) {
    if (strcmp(text, *words) == 0) return true;
  }
  return false;
}

// A name, and the colon that makes it a keyword.
static Word read_word(TSLexer *lexer) {
  Word word = {{0}, false};
  unsigned length = 0;
  while (is_letter(lexer->lookahead) || is_digit(lexer->lookahead)) {
    // A longer word is none of those we look for.
    if (length < WORD_MAX - 1) word.text[length++] = (char)lexer->lookahead;
    advance(lexer);
  }
  if (lexer->lookahead == ':') {
    advance(lexer);
    word.is_keyword = lexer->lookahead != '=' && lexer->lookahead != ':';
  }
  return word;
}

typedef struct {
  bool newline;
  bool comment;
  // A slash that opens no comment was read.
  bool slash;
} Gap;

// Space and comments up to the next token.
static Gap skip_gap(TSLexer *lexer) {
  Gap gap = {false, false, false};
  while (!lexer->eof(lexer)) {
    int32_t c = lexer->lookahead;
    if (is_space(c)) {
      gap.newline |= c == '\n';
      lexer->advance(lexer, true);
    } else if (c == '/') {
      advance(lexer);
      if (lexer->lookahead == '/') {
        gap.comment = true;
        while (!lexer->eof(lexer) && lexer->lookahead != '\n') advance(lexer);
      } else if (lexer->lookahead == '*') {
        gap.comment = true;
        advance(lexer);
        int32_t previous = 0;
        while (!lexer->eof(lexer) && !(previous == '*' && lexer->lookahead == '/')) {
          previous = lexer->lookahead;
          gap.newline |= previous == '\n';
          advance(lexer);
        }
        if (!lexer->eof(lexer)) advance(lexer);
      } else {
        gap.slash = true;
        break;
      }
    } else {
      break;
    }
  }
  return gap;
}

static bool skip_parentheses(TSLexer *lexer) {
  unsigned depth = 0;
  do {
    if (lexer->eof(lexer)) return false;
    if (lexer->lookahead == '(') depth++;
    if (lexer->lookahead == ')') depth--;
    advance(lexer);
  } while (depth > 0);
  return true;
}

// Does what stands here go on as the head of a method, up to its `=>`? Only what a head may hold is
// read, and no line at or left of `column`.
static bool leads_to_arrow(TSLexer *lexer, int16_t column) {
  static const char *const headers[] = {"subclass", "define", NULL};
  for (;;) {
    Gap gap = skip_gap(lexer);
    if (lexer->eof(lexer)) return false;
    if (gap.slash) continue;
    if (gap.newline && column_here(lexer) <= column) return false;
    int32_t c = lexer->lookahead;
    if (is_letter(c)) {
      Word word = read_word(lexer);
      if (word.is_keyword && is_one_of(word.text, headers)) return false;
      // `name:=`, and the second colon of `name::`.
      if (lexer->lookahead == '=' && !word.is_keyword) {
        advance(lexer);
        if (lexer->lookahead != '>') return false;
        advance(lexer);
        return true;
      }
    } else if (c == '=') {
      advance(lexer);
      if (lexer->lookahead == '>') return true;
      if (lexer->lookahead != '=' && lexer->lookahead != ':' && lexer->lookahead != '/') return false;
      advance(lexer);
      if (lexer->lookahead == '=') advance(lexer);
    } else if (c == ':') {
      advance(lexer);
      if (lexer->lookahead == '=') return false;
    } else if (c == '(') {
      if (!skip_parentheses(lexer)) return false;
    } else if (c == '#') {
      advance(lexer);
      if (lexer->lookahead == '(' || lexer->lookahead == '[' || lexer->lookahead == '{') return false;
    } else if (c == '@' || c == '|' || c == '&' || c == '\\' || is_operator(c)) {
      advance(lexer);
    } else {
      return false;
    }
  }
}

static const char *const SLOT_WORDS[] = {"field", "state", "classState", NULL};

// Which member starts here; answers NONE when none does.
static int member_kind(TSLexer *lexer, int16_t column, bool in_protocol) {
  static const char *const clauses[] = {"native", "handleScope", "extending", NULL};
  if (is_letter(lexer->lookahead)) {
    Word word = read_word(lexer);
    if (word.is_keyword && is_one_of(word.text, clauses)) {
      return leads_to_arrow(lexer, column) ? MEMBER_START : NONE;
    }
    if (word.is_keyword && !in_protocol && is_one_of(word.text, SLOT_WORDS)) {
      return leads_to_arrow(lexer, column) ? MEMBER_START : SLOT_START;
    }
    return MEMBER_START;
  }
  return is_operator(lexer->lookahead) ? MEMBER_START : NONE;
}

// A line at the column of its class is a member only when it looks like one.
static int outer_member_kind(TSLexer *lexer, int16_t column) {
  if (is_letter(lexer->lookahead)) {
    bool upper = is_upper(lexer->lookahead);
    Word word = read_word(lexer);
    bool is_slot = word.is_keyword && is_one_of(word.text, SLOT_WORDS);
    if (lexer->lookahead == '@' || (upper && !word.is_keyword)) return NONE;
    if (leads_to_arrow(lexer, column)) return MEMBER_START;
    return is_slot ? SLOT_START : NONE;
  }
  return is_operator(lexer->lookahead) && leads_to_arrow(lexer, column) ? MEMBER_START : NONE;
}

// Which declaration the words here open; NONE for a statement.
static int declaration_kind(TSLexer *lexer, int16_t column) {
  static const char *const modifiers[] = {"abstract", "sealed", "typed", "internal", NULL};
  Word word;
  for (;;) {
    if (!is_letter(lexer->lookahead)) return NONE;
    word = read_word(lexer);
    if (word.is_keyword || !is_one_of(word.text, modifiers)) break;
    skip_gap(lexer);
  }
  if (word.is_keyword) return NONE;
  if (strcmp(word.text, "type") == 0) {
    skip_gap(lexer);
    return is_upper(lexer->lookahead) ? ALIAS_START : NONE;
  }
  if (is_lower(word.text[0]) && strcmp(word.text, "nil") != 0) {
    if (lexer->lookahead != '@') return NONE;
    advance(lexer);
    if (!is_upper(lexer->lookahead)) return NONE;
    word = read_word(lexer);
  }
  if (lexer->lookahead == '(' && !skip_parentheses(lexer)) return NONE;
  skip_gap(lexer);
  if (is_letter(lexer->lookahead)) {
    Word next = read_word(lexer);
    if (next.is_keyword && strcmp(next.text, "subclass") == 0) return CLASS_START;
    if (next.is_keyword && strcmp(next.text, "define") == 0 && strcmp(word.text, "Protocol") == 0) {
      return PROTOCOL_START;
    }
    if (next.is_keyword || strcmp(next.text, "class") != 0) return NONE;
    skip_gap(lexer);
  }
  if (lexer->lookahead != '>') return NONE;
  advance(lexer);
  if (lexer->lookahead != '>') return NONE;
  advance(lexer);
  return leads_to_arrow(lexer, column) ? EXTENSION_START : NONE;
}

static bool emit(TSLexer *lexer, int token) {
  lexer->result_symbol = (TSSymbol)token;
  return true;
}

static bool end_member(Scanner *scanner, TSLexer *lexer) {
  scanner->member_column = NONE;
  return emit(lexer, MEMBER_END);
}

static bool end_class(Scanner *scanner, TSLexer *lexer) {
  scanner->class_column = NONE;
  scanner->member_column = NONE;
  return emit(lexer, CLASS_END);
}

static bool start_member(Scanner *scanner, TSLexer *lexer, int kind, int16_t column, bool starts_above) {
  if (kind == NONE) return false;
  scanner->member_column = column;
  scanner->starts_above = starts_above;
  return emit(lexer, kind);
}

static bool start_declaration(Scanner *scanner, TSLexer *lexer, int kind, int16_t column) {
  if (kind == NONE) return false;
  if (kind == EXTENSION_START) return start_member(scanner, lexer, kind, column, false);
  if (kind != ALIAS_START) scanner->class_column = column;
  return emit(lexer, kind);
}

// Does the token on a new line start a statement, rather than go on with the one above?
static bool starts_statement(TSLexer *lexer) {
  int32_t c = lexer->lookahead;
  if (is_letter(c)) return !read_word(lexer).is_keyword;
  if (c == '-') {
    advance(lexer);
    return is_digit(lexer->lookahead);
  }
  if (c == '<') {
    advance(lexer);
    return lexer->lookahead == '<';
  }
  return is_digit(c) || (c != 0 && c < 128 && strchr("\"#$([{^@'", (int)c) != NULL);
}

static bool scan_statement_end(Scanner *scanner, TSLexer *lexer, const bool *valid) {
  Gap gap = skip_gap(lexer);
  if (lexer->eof(lexer)) {
    if (valid[MEMBER_END]) return end_member(scanner, lexer);
    return valid[NEWLINE] && emit(lexer, NEWLINE);
  }
  if (!gap.newline) return false;
  bool outside = scanner->member_column != NONE && column_here(lexer) - (gap.slash ? 1 : 0) <= scanner->member_column;
  // Also where no member may end yet: what is left open in it is then closed by the parser's recovery.
  bool may_end = valid[MEMBER_END] || valid[NEWLINE] || !scanner->starts_above;
  if (outside && may_end && !is_closer(lexer->lookahead)) return end_member(scanner, lexer);
  return valid[NEWLINE] && !gap.slash && starts_statement(lexer) && emit(lexer, NEWLINE);
}

static bool scan_member(Scanner *scanner, TSLexer *lexer, const bool *valid) {
  Gap gap = skip_gap(lexer);
  if (lexer->eof(lexer)) return end_class(scanner, lexer);
  int16_t column = column_here(lexer) - (gap.slash ? 1 : 0);
  int32_t c = lexer->lookahead;
  bool in_protocol = !valid[SLOT_START];
  if (gap.newline && column <= scanner->class_column) {
    int kind = gap.slash ? MEMBER_START : in_protocol ? NONE : outer_member_kind(lexer, column);
    if (kind == NONE) return c != '.' && end_class(scanner, lexer);
    return !gap.comment && start_member(scanner, lexer, kind, column, true);
  }
  if (gap.comment) return false;
  if (gap.slash) return start_member(scanner, lexer, MEMBER_START, column, true);
  lexer->mark_end(lexer);
  return start_member(scanner, lexer, member_kind(lexer, column, in_protocol), column, false);
}

static bool scan_declaration(Scanner *scanner, TSLexer *lexer) {
  Gap gap = skip_gap(lexer);
  if (lexer->eof(lexer) || gap.comment || gap.slash) return false;
  lexer->mark_end(lexer);
  int16_t column = column_here(lexer);
  int kind = declaration_kind(lexer, column);
  return start_declaration(scanner, lexer, kind, column);
}

// In broken text: ends what a line ends, and finds the next member or class again.
static bool scan_recovery(Scanner *scanner, TSLexer *lexer) {
  Gap gap = skip_gap(lexer);
  if (lexer->eof(lexer) || gap.slash || !gap.newline || is_closer(lexer->lookahead)) return false;
  int16_t column = column_here(lexer);
  if (scanner->member_column != NONE) {
    return column <= scanner->member_column && end_member(scanner, lexer);
  }
  if (scanner->class_column != NONE) {
    if (column <= scanner->class_column) return end_class(scanner, lexer);
    if (gap.comment) return false;
    lexer->mark_end(lexer);
    return start_member(scanner, lexer, outer_member_kind(lexer, column), column, false);
  }
  if (gap.comment) return false;
  lexer->mark_end(lexer);
  int kind = declaration_kind(lexer, column);
  return start_declaration(scanner, lexer, kind, column);
}

// Text of a string up to its end, an escape or an interpolation.
static bool scan_string(TSLexer *lexer) {
  bool found = false;
  while (!lexer->eof(lexer) && lexer->lookahead != '"' && lexer->lookahead != '\\' && lexer->lookahead != '{') {
    advance(lexer);
    found = true;
  }
  lexer->mark_end(lexer);
  return found && emit(lexer, STRING_CONTENT);
}

bool tree_sitter_beamtalk_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  lexer->mark_end(lexer);
  if (valid[ERROR_SENTINEL]) return scan_recovery(scanner, lexer);
  if (valid[STRING_CONTENT]) return scan_string(lexer);
  if (valid[CLASS_START]) return scan_declaration(scanner, lexer);
  if (valid[MEMBER_START] || valid[CLASS_END]) return scan_member(scanner, lexer, valid);
  return scan_statement_end(scanner, lexer, valid);
}

void *tree_sitter_beamtalk_external_scanner_create(void) {
  Scanner *scanner = malloc(sizeof(Scanner));
  if (scanner) *scanner = (Scanner){NONE, NONE, false};
  return scanner;
}

void tree_sitter_beamtalk_external_scanner_destroy(void *payload) { free(payload); }

unsigned tree_sitter_beamtalk_external_scanner_serialize(void *payload, char *buffer) {
  memcpy(buffer, payload, sizeof(Scanner));
  return sizeof(Scanner);
}

void tree_sitter_beamtalk_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  Scanner *scanner = payload;
  *scanner = (Scanner){NONE, NONE, false};
  if (length == sizeof(Scanner)) memcpy(scanner, buffer, length);
}
