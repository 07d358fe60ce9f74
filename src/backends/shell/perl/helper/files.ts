// What the helper does with a file: tell, read and write.

import { CHUNK_BYTES, MAX_OPEN } from "../bounds.ts";

export const FILES = `
my (%open, $uses);    # files that are read and written in several requests, by operation

sub keep {
    my ($id, $what) = @_;
    $what->{used} = ++$uses;
    $open{$id} = $what;
    return if keys %open <= ${MAX_OPEN};
    my ($oldest) = sort { $open{$a}{used} <=> $open{$b}{used} } keys %open;
    drop($oldest);
}

sub drop {
    my $dropped = delete $open{$_[0]} or return;
    unlink $dropped->{staged} if defined $dropped->{staged};
}

sub kept { $open{$_[0]} or refuse("CLOSED") }

sub told {
    my ($id, $path) = @_;
    my ($name, @stat) = find($path);
    answer($id, "k", facts(@stat), from_root($name));
}

# Nothing but a regular file is opened: others make the opener wait, or do something by it.
sub open_file {
    my ($name, @stat) = @_;
    require_file(@stat);
    sysopen my $file, $name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW or os();
    @stat = stat $file;
    require_file(@stat);
    return ($file, $stat[7]);
}

sub bytes_of {
    my ($file, $most) = @_;
    my $bytes = "";
    while (length $bytes < $most) {
        my $count = sysread $file, $bytes, $most - length $bytes, length $bytes;
        defined $count or os();
        last if $count == 0;
    }
    return $bytes;
}

# Up to the size that the file has now: one that grows faster than it is read would have no end.
sub begin_read {
    my ($id, $path, $offset, $length) = @_;
    my ($file, $size) = open_file(find($path));
    my $end = $length eq "" || $offset + $length > $size ? $size : $offset + $length;
    return answer($id, "k", 0, "") if $offset >= $end;
    sysseek $file, $offset, 0 or os();
    read_on($id, { file => $file, left => $end - $offset });
}

sub read_on {
    my ($id, $read) = @_;
    my $bytes = bytes_of($read->{file}, $read->{left} < ${CHUNK_BYTES} ? $read->{left} : ${CHUNK_BYTES});
    $read->{left} -= length $bytes;
    my $has_more = length $bytes && $read->{left} ? 1 : 0;
    if ($has_more) { keep($id, $read) } else { drop($id) }
    answer($id, "k", $has_more, $bytes);
}

sub contents {
    my ($id, $most, @paths) = @_;
    my $room = ${CHUNK_BYTES};
    my @contents;
    begin($id, sub {
        for (1 .. 16) {
            my ($word, $bytes) = @paths ? content(shift @paths, $most, $room) : "later";
            if ($word eq "later") {
                answer($id, "k", @contents);
                return 1;
            }
            push @contents, $word, $bytes;
            $room -= length $bytes;
        }
        return 0;
    });
}

sub content {
    my ($path, $most, $room) = @_;
    my @content = eval {
        my ($file, $size) = open_file(find($path));
        return ("none", "") if $size > $most;
        return ("large", "") if $size > ${CHUNK_BYTES};
        return "later" if $size > $room;
        return ("file", bytes_of($file, $size));
    };
    return @content ? @content : ("none", "");
}

sub begin_write {
    my ($id, $path, $is_last, $bytes) = @_;
    place($path);
    my $staged = stage();
    sysopen my $file, $staged, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666 or os();
    keep($id, { path => $path, file => $file, staged => $staged });
    write_on($id, $is_last, $bytes);
}

sub write_on {
    my ($id, $is_last, $bytes) = @_;
    my $write = kept($id);
    $write->{used} = ++$uses;
    for (my $at = 0; $at < length $bytes; ) {
        my $count = syswrite $write->{file}, $bytes, length($bytes) - $at, $at;
        defined $count or os();
        $at += $count;
    }
    if ($is_last) {
        my ($name, $mode) = place($write->{path});
        not defined $mode or chmod $mode, $write->{file} or os();
        close $write->{file} or os();
        rename $write->{staged}, $name or os();
        delete $open{$id};
    }
    answer($id, "k");
}
`;
